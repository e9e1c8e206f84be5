// Runs the training steps of a run that is cut into shards (train.shards), or whose micro-batches
// share the statistics of norms over the batch: this rank's shards one after another, then the sum
// over the shards of all ranks, then the update, which every rank does alike.
#pragma once

#include <memory>
#include <optional>

#include "frontend/train/shard_collective.h"
#include "frontend/train/shard_outputs.h"
#include "frontend/train/shard_records.h"
#include "frontend/train/steps.h"
#include "src/runtime/rank_sum.h"

namespace keel::train {

// The processes of a run, how they add up, and what they hold in memory.
struct Ranks {
  Communicator& all;
  Reduction reduction = Reduction::kFixed;
  // Where norms share their statistics, each rank holds the values of so many shards at once; the
  // others of the update keep what the norms read, and compute the rest again. No byte of a result
  // depends on it. 0: the shards of one micro-batch.
  std::int64_t at_once = 0;
};

// The steps of a job: one graph for each, or shards. Throws Error{kUsage} when a network or a
// number of shards does not fit the ranks, and as the constructors of both.
std::unique_ptr<Steps> make_steps(Backend& backend, Variables& variables, const Job& job,
                                  task::Stream& stream, Ranks ranks);

// T is the type in which the backend stores float32.
template <class T>
class ShardRunner final : public Steps {
 public:
  ShardRunner(Backend& backend, Variables& variables, const Job& job, task::Stream& stream,
              Ranks ranks);

  std::int64_t programs() const override { return shard_.size() + 1; }
  int signal() const override { return records_.signal(); }
  void start(const StepPlace& place) override;
  std::int64_t due() const override { return has_result_ ? 1 : 0; }
  const StepResult* next(bool wait) override;
  std::string first_not_finite(const StepResult& result) override;
  void undo() override {}  // an update that is not finite writes nothing

 private:
  // A shard of a micro-batch, of those that this rank runs, counted in the stream's order.
  struct Piece {
    StepPlace place;
    std::int64_t number = 0;
    double items = 0;  // of the whole update
  };
  std::int64_t pieces(const StepPlace& place) const { return own_.count() * micro_batches(place); }
  // Throws Error{kUsage} if shards would meet more often in some batches than in others.
  void expect_same_collectives() const;
  const task::Batch& batch_of(const Piece& piece);
  Program& feed(ProgramCache& programs, const task::Batch& batch, const Piece& piece);
  void run(const Piece& piece, ShardRecord& record);
  ShardRecord run_shard(Piece& piece);
  std::vector<ShardRecord> run_in_step(const Piece& first);
  ShardInstance begin(const Piece& piece);
  void add_part(const Program* program, std::int64_t part, const Piece& piece);
  void take(const Program& program, std::int64_t part, double& loss, ShardRecord& record);
  std::string piece_text(const NonFinite& found, const StepResult& r, std::int64_t number) const;
  void conclude(const StepPlace& place, const std::vector<ShardRecord>& own,
                std::span<const T> sum);
  void update(std::span<const T> sum);

  Communicator& ranks_;
  ShardRange own_;
  const bool shares_;
  // The pieces of an update with arenas of their own; the others share one, with the largest
  // program, and take turns in it if they are more than one.
  const std::int64_t alone_;
  const bool takes_turns_;
  std::unique_ptr<task::Stream> shards_;  // this rank's
  ProgramCache shard_;
  const Program& largest_;
  ShardOutputs outputs_;
  ShardRecords records_;
  Collectives collectives_;
  struct Slot {
    explicit Slot(ShardRunner& runner);
    Arena arena;
    ProgramCache programs;
  };
  std::vector<std::unique_ptr<Slot>> slots_;   // of pieces that are alone
  std::vector<std::unique_ptr<Memory>> kept_;  // by piece, of those that take turns
  Program update_;
  std::vector<T> term_, total_;
  TreeSum<T> micro_sum_;  // over micro-batches: of a shard, or of the sums of all shards
  RankSum<T> sum_;
  bool has_result_ = false;
  StepResult result_;
};

}  // namespace keel::train
