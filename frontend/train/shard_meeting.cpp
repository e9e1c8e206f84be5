#include "frontend/train/shard_meeting.h"

namespace keel::train {

Meetings::Meetings(Communicator& ranks, std::int64_t shards, const Program& like)
    : ranks_(ranks), shards_(shards) {
  for (std::int64_t i = 0; i < like.meetings(); ++i) {
    names_.push_back(like.meeting(i));
    bytes_.push_back(std::size_t(like.output_ref(like.meeting(i)).type.bytes()));
    all_.emplace_back(std::size_t(shards) * bytes_.back());
  }
}

void Meetings::run(std::span<Program* const> programs) {
  for (std::int64_t part = 0; part <= std::ssize(bytes_); ++part) {
    for (Program* program : programs) {
      if (program) program->run_part(part);
    }
    if (part < std::ssize(bytes_)) meet(part, programs);
  }
}

void Meetings::meet(std::int64_t meeting, std::span<Program* const> programs) {
  const std::string& name = names_[std::size_t(meeting)];
  const std::size_t bytes = bytes_[std::size_t(meeting)];
  mine_.assign(programs.size() * bytes, std::byte{0});
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (programs[i]) programs[i]->read(name, std::span(mine_).subspan(i * bytes, bytes));
  }
  std::vector<std::byte>& all = all_[std::size_t(meeting)];
  std::vector<Communicator::Room> rooms;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const ShardRange of = shards_of_rank(shards_, rank, ranks_.size());
    rooms.push_back(
        std::span(all).subspan(std::size_t(of.first) * bytes, std::size_t(of.count()) * bytes));
  }
  ranks_.gather(mine_, rooms);
  for (Program* program : programs) {
    if (program) program->feed(name, all);
  }
}

void Meetings::feed_last(Program& program) const {
  for (std::size_t i = 0; i < names_.size(); ++i) program.feed(names_[i], all_[i]);
}

}  // namespace keel::train
