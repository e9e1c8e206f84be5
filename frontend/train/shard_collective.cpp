#include "frontend/train/shard_collective.h"

#include <algorithm>

namespace keel::train {

Collectives::Collectives(Communicator& ranks, std::int64_t shards, std::int64_t micro_batches,
                         const Program& like)
    : ranks_(ranks), shards_(shards), micro_batches_(micro_batches) {
  for (std::int64_t i = 0; i < like.collectives(); ++i) {
    names_.push_back(like.collective(i));
    bytes_.push_back(std::size_t(like.output_ref(like.collective(i)).type.bytes()));
    all_.emplace_back(std::size_t(shards * micro_batches) * bytes_.back());
  }
}

void Collectives::run(std::span<ShardInstance> instances, const Begin& begin, const End& end) {
  const std::size_t own =
      std::size_t(shards_of_rank(shards_, ranks_.rank(), ranks_.size()).count() * micro_batches_);
  for (std::int64_t part = 0; part <= std::ssize(bytes_); ++part) {
    const bool meets = part < std::ssize(bytes_);
    // An instance without a row gives zeros, and so do micro-batches that an update lacks.
    if (meets) mine_.assign(own * bytes_[std::size_t(part)], std::byte{0});
    for (std::size_t i = 0; i < instances.size(); ++i) {
      if (part == 0) begin(i);
      const ShardInstance& instance = instances[i];
      if (instance.program) {
        run_part(part, instance);
        if (meets) instance.program->read(names_[std::size_t(part)], given_by(part, i));
      }
      end(part, i);
    }
    if (meets) gather(part);
  }
}

void Collectives::run_part(std::int64_t part, const ShardInstance& instance) {
  Program& program = *instance.program;
  if (instance.kept && part > 0) program.enter_part(part, *instance.kept);
  feed_read(part, instance);
  program.run_part(part);
  if (instance.kept) program.leave_part(part, *instance.kept);
}

void Collectives::feed_read(std::int64_t part, const ShardInstance& instance) {
  const auto feed = [&](std::int64_t collective) {
    instance.program->feed(names_[std::size_t(collective)], all_[std::size_t(collective)]);
  };
  if (!instance.kept) {
    if (part > 0) feed(part - 1);
    return;
  }
  for (const std::int64_t collective : instance.program->collectives_read(part)) feed(collective);
}

std::span<std::byte> Collectives::given_by(std::int64_t collective, std::size_t instance) {
  const std::size_t bytes = bytes_[std::size_t(collective)];
  return std::span(mine_).subspan(instance * bytes, bytes);
}

// Ranks give one after another; what is merged is in the order of micro-batches, then of shards.
void Collectives::gather(std::int64_t collective) {
  const std::size_t bytes = bytes_[std::size_t(collective)];
  std::vector<std::byte>& all = all_[std::size_t(collective)];
  by_rank_.resize(all.size());
  std::vector<Communicator::Room> rooms;
  std::size_t first = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const ShardRange of = shards_of_rank(shards_, rank, ranks_.size());
    const std::size_t size = std::size_t(of.count() * micro_batches_) * bytes;
    rooms.push_back(std::span(by_rank_).subspan(first, size));
    first += size;
  }
  ranks_.gather(mine_, rooms);
  auto from = by_rank_.begin();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const ShardRange of = shards_of_rank(shards_, rank, ranks_.size());
    const auto size = std::ptrdiff_t(std::size_t(of.count()) * bytes);
    for (std::int64_t m = 0; m < micro_batches_; ++m, from += size) {
      std::copy(from, from + size,
                all.begin() + std::ptrdiff_t(std::size_t(m * shards_ + of.first) * bytes));
    }
  }
}

void Collectives::feed_last(Program& program) const {
  for (std::size_t i = 0; i < names_.size(); ++i) program.feed(names_[i], all_[i]);
}

}  // namespace keel::train
