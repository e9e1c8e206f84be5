#include "frontend/train/shard_outputs.h"

#include <algorithm>

#include "frontend/train/shard_graph.h"

namespace keel::train {

ShardOutputs::ShardOutputs(const Program& like, bool by_part) {
  const Graph& shard = like.graph();
  for (const NamedValue& output : shard.outputs()) {
    const std::int64_t part = by_part ? like.part_of(output.name) : like.collectives();
    part_of_[output.name] = part;
    const auto count = std::size_t(shard.shape(output.value).elements());
    const bool is_real = is_floating(shard.type(output.value).dtype);
    if (output.name.starts_with(kSummed)) summed_.push_back({output.name, 0, count, true, part});
    if (output.name.starts_with(kWhole)) whole_.push_back({output.name, 0, count, is_real, part});
  }
  order(summed_);
  order(whole_);
}

void ShardOutputs::order(std::vector<Place>& places) {
  std::ranges::stable_sort(places, {}, &Place::part);
  std::size_t first = 0;
  for (Place& place : places) {
    place.first = first;
    first += place.count;
  }
}

std::size_t ShardOutputs::count(const std::vector<Place>& places) {
  return places.empty() ? 0 : places.back().first + places.back().count;
}

ShardOutputs::Range ShardOutputs::summed_in(std::int64_t part) const {
  const auto own = std::ranges::equal_range(summed_, part, {}, &Place::part);
  if (own.empty()) return {};
  return {own.front().first, own.back().first + own.back().count - own.front().first};
}

void ShardOutputs::expect_same_parts(const Program& program) const {
  for (const auto& [name, part] : part_of_) {
    check(program.part_of(name) == part, ErrorKind::kInternal,
          "[shards] output {}: expected it of part {} of a batch of any shape, got part {}", name,
          part, program.part_of(name));
  }
}

template <class T>
void ShardOutputs::read_summed(const Program& program, std::int64_t part, std::span<T> to) const {
  const std::size_t first = summed_in(part).first;
  for (const Place& place : std::ranges::equal_range(summed_, part, {}, &Place::part)) {
    program.read(place.name, std::as_writable_bytes(to.subspan(place.first - first, place.count)));
  }
}

template <class T>
void ShardOutputs::read_whole(const Program& program, std::int64_t part,
                              std::span<double> to) const {
  const auto read = [&]<class U>(const Place& place, std::vector<U> values) {
    program.read(place.name, std::as_writable_bytes(std::span(values)));
    std::ranges::copy(values, to.begin() + std::ptrdiff_t(place.first));
  };
  for (const Place& place : std::ranges::equal_range(whole_, part, {}, &Place::part)) {
    if (place.is_floating) {
      read(place, std::vector<T>(place.count));
    } else {
      read(place, std::vector<std::int32_t>(place.count));
    }
  }
}

template <class T>
void ShardOutputs::feed_summed(Program& program, std::span<const T> from) const {
  for (const Place& place : summed_) {
    program.feed(place.name, std::as_bytes(from.subspan(place.first, place.count)));
  }
}

template <class T>
void ShardOutputs::feed_whole(Program& program, std::span<const double> from) const {
  const auto feed = [&]<class U>(const Place& place, U) {
    const auto first = from.begin() + std::ptrdiff_t(place.first);
    const std::vector<U> values(first, first + std::ptrdiff_t(place.count));
    program.feed(place.name, std::as_bytes(std::span(values)));
  };
  for (const Place& place : whole_) {
    if (place.is_floating) {
      feed(place, T());
    } else {
      feed(place, std::int32_t());
    }
  }
}

template void ShardOutputs::read_summed(const Program&, std::int64_t, std::span<float>) const;
template void ShardOutputs::read_summed(const Program&, std::int64_t, std::span<double>) const;
template void ShardOutputs::read_whole<float>(const Program&, std::int64_t,
                                              std::span<double>) const;
template void ShardOutputs::read_whole<double>(const Program&, std::int64_t,
                                               std::span<double>) const;
template void ShardOutputs::feed_summed(Program&, std::span<const float>) const;
template void ShardOutputs::feed_summed(Program&, std::span<const double>) const;
template void ShardOutputs::feed_whole<float>(Program&, std::span<const double>) const;
template void ShardOutputs::feed_whole<double>(Program&, std::span<const double>) const;

}  // namespace keel::train
