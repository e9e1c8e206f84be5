#include "frontend/train/shard_outputs.h"

#include <algorithm>

#include "frontend/train/shard_graph.h"

namespace keel::train {

ShardOutputs::ShardOutputs(const Graph& shard) {
  for (const NamedValue& output : shard.outputs()) {
    const auto count = std::size_t(shard.shape(output.value).elements());
    if (output.name.starts_with(kSummed)) summed_.push_back({output.name, summed_count(), count});
    if (output.name.starts_with(kWhole)) {
      const bool is_real = is_floating(shard.type(output.value).dtype);
      whole_.push_back({output.name, whole_count(), count, is_real});
    }
  }
}

std::size_t ShardOutputs::count(const std::vector<Place>& places) {
  return places.empty() ? 0 : places.back().first + places.back().count;
}

template <class T>
void ShardOutputs::read_summed(const Program& program, std::span<T> to) const {
  for (const Place& place : summed_) {
    program.read(place.name, std::as_writable_bytes(to.subspan(place.first, place.count)));
  }
}

template <class T>
void ShardOutputs::read_whole(const Program& program, std::span<double> to) const {
  const auto read = [&]<class U>(const Place& place, std::vector<U> values) {
    program.read(place.name, std::as_writable_bytes(std::span(values)));
    std::ranges::copy(values, to.begin() + std::ptrdiff_t(place.first));
  };
  for (const Place& place : whole_) {
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

template void ShardOutputs::read_summed(const Program&, std::span<float>) const;
template void ShardOutputs::read_summed(const Program&, std::span<double>) const;
template void ShardOutputs::read_whole<float>(const Program&, std::span<double>) const;
template void ShardOutputs::read_whole<double>(const Program&, std::span<double>) const;
template void ShardOutputs::feed_summed(Program&, std::span<const float>) const;
template void ShardOutputs::feed_summed(Program&, std::span<const double>) const;
template void ShardOutputs::feed_whole<float>(Program&, std::span<const double>) const;
template void ShardOutputs::feed_whole<double>(Program&, std::span<const double>) const;

}  // namespace keel::train
