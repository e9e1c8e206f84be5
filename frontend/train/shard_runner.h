// Runs the training steps of a run that is cut into shards (train.shards): this rank's shards one
// after another, then the sum over the shards of all ranks, then the update, which every rank does
// alike.
#pragma once

#include <memory>
#include <optional>

#include "frontend/train/shard_meeting.h"
#include "frontend/train/steps.h"
#include "src/runtime/rank_sum.h"

namespace keel::train {

// The processes of a run, and how they add up.
struct Ranks {
  Communicator& all;
  Reduction reduction = Reduction::kFixed;
};

// The steps of a job: one graph for each, or shards. Throws Error{kUsage} when a network or a
// number of shards does not fit the ranks, and as the constructors of both.
std::unique_ptr<Steps> make_steps(Backend& backend, Variables& variables, const Job& job,
                                  task::Stream& stream, Ranks ranks);

// The values in a shard's outputs, one after another.
class ShardOutputs {
 public:
  explicit ShardOutputs(const Graph& shard);

  struct Place {
    std::string name;
    std::size_t first = 0, count = 0;
    bool is_floating = true;
  };
  const std::vector<Place>& summed() const { return summed_; }
  const std::vector<Place>& whole() const { return whole_; }
  std::size_t summed_count() const { return count(summed_); }
  std::size_t whole_count() const { return count(whole_); }

 private:
  static std::size_t count(const std::vector<Place>& places);

  std::vector<Place> summed_, whole_;
};

// T is the type in which the backend stores float32.
template <class T>
class ShardRunner final : public Steps {
 public:
  ShardRunner(Backend& backend, Variables& variables, const Job& job, task::Stream& stream,
              Ranks ranks);

  std::int64_t programs() const override { return shard_.size() + 1; }
  int signal() const override { return signal_; }
  void start(const StepPlace& place) override;
  std::int64_t due() const override { return has_result_ ? 1 : 0; }
  const StepResult* next(bool wait) override;
  std::string first_not_finite(const StepResult& result) override;
  void undo() override {}  // an update that is not finite writes nothing

 private:
  // A shard gives this besides its sums, and all ranks exchange it.
  struct Record {
    double loss = 0;
    double with_rows = 0;  // its micro-batches that have rows
    std::vector<double> watched, whole;
  };
  // A micro-batch of this rank's shards, counted in the stream's order.
  struct Piece {
    StepPlace place;
    std::int64_t number = 0;
    double items = 0;  // of the whole update
  };
  std::int64_t pieces(const StepPlace& place) const { return own_.count() * micro_batches(place); }
  // Throws Error{kUsage} if shards would meet more often in some batches than in others.
  void expect_same_meetings() const;
  const task::Batch& batch_of(const Piece& piece);
  Program& feed(ProgramCache& programs, const task::Batch& batch, const Piece& piece);
  Record no_record() const;
  void run(const Piece& piece, Record& record);
  Record run_shard(Piece& piece);
  std::vector<Record> run_in_step(Piece piece);
  ProgramCache& programs_of(std::int64_t shard);
  void take_whole(const Program& program, Record& record);
  void take(const Program& program, Record& record);
  std::vector<Record> exchange(const std::vector<Record>& own);
  void conclude(const StepPlace& place, const std::vector<Record>& records);
  void update(std::span<const T> total, const std::vector<Record>& records);
  void feed_whole(const std::vector<Record>& records);

  Communicator& ranks_;
  ShardRange own_;
  std::unique_ptr<task::Stream> shards_;  // this rank's
  ProgramCache shard_;
  const Program& largest_;
  ShardOutputs outputs_;
  Meetings meetings_;
  // Programs that run in step hold their values at the same time, in memory of their own. The first
  // shard's are those of shard_.
  struct Slot {
    explicit Slot(ShardRunner& runner);
    Arena arena;
    ProgramCache programs;
  };
  std::vector<std::unique_ptr<Slot>> others_;
  Program update_;
  std::vector<T> term_;
  TreeSum<T> shard_sum_;  // of a shard's micro-batches
  RankSum<T> sum_;
  int signal_ = 0;  // what any rank had received in the last step
  bool has_result_ = false;
  StepResult result_;
};

}  // namespace keel::train
