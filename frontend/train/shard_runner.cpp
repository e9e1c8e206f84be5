#include "frontend/train/shard_runner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "frontend/train/shard_graph.h"
#include "frontend/train/signals.h"
#include "frontend/train/step_runner.h"
#include "src/ops/shard_parts.h"

namespace keel::train {
namespace {

task::StreamOptions shard_options(const TrainOptions& train, ShardRange own, bool by_batch) {
  return {.batch = train.batch,
          .shuffle = static_cast<std::uint64_t>(train.seed),
          .shard_range = {train.shards, own.first, own.end, train.accumulate, by_batch}};
}

// The pieces of an update that lie alone in an arena, beside one arena for all others.
std::int64_t alone_of(std::int64_t own, const TrainOptions& train, std::int64_t at_once) {
  return std::min(own * train.accumulate, at_once > 0 ? at_once : own) - 1;
}

// Whether a rank has more pieces than it may hold at once, which all ranks must agree on.
bool take_turns(const Communicator& ranks, const TrainOptions& train, std::int64_t at_once) {
  const std::int64_t most = (train.shards + ranks.size() - 1) / ranks.size();
  return most * train.accumulate > (at_once > 0 ? at_once : most);
}

}  // namespace

std::unique_ptr<Steps> make_steps(Backend& backend, Variables& variables, const Job& job,
                                  task::Stream& stream, Ranks ranks) {
  const std::int64_t shards = job.train().shards, processes = ranks.all.size();
  check(shards >= processes, ErrorKind::kUsage,
        "train.shards: expected at least {}, for each of {} processes takes whole shards, got {}; "
        "give a number with --set train.shards=N, which is a part of the recipe",
        processes, processes, shards);
  if (shards == 1 && !shares_statistics(job)) {
    return std::make_unique<StepRunner>(backend, variables, job, stream);
  }
  if (backend.storage(DType::kF32) == DType::kF64) {
    return std::make_unique<ShardRunner<double>>(backend, variables, job, stream, ranks);
  }
  return std::make_unique<ShardRunner<float>>(backend, variables, job, stream, ranks);
}

template <class T>
ShardRunner<T>::ShardRunner(Backend& backend, Variables& variables, const Job& job,
                            task::Stream& stream, Ranks ranks)
    : Steps(backend, variables, job, stream),
      ranks_(ranks.all),
      own_(shards_of_rank(job.train().shards, ranks_.rank(), ranks_.size())),
      shares_(shares_statistics(job)),
      alone_(shares_ ? alone_of(own_.count(), job.train(), ranks.at_once) : 0),
      takes_turns_(shares_ && take_turns(ranks_, job.train(), ranks.at_once)),
      shards_(job.splits().stream(task::Split::kTrain, shard_options(job.train(), own_, shares_))),
      shard_(
          backend, variables,
          [this](const task::Sizes& sizes) {
            monitors_.clear();
            return build_shard(job_, sizes, &monitors_);
          },
          {.arena = &arena_, .carries = &carries_, .recompute_before = takes_turns_ ? "loss" : ""}),
      largest_(shard_.at(shards_->shapes().front())),
      outputs_(largest_, takes_turns_),
      records_(ranks_, job.train().shards, monitors_.size(), outputs_.whole_count(),
               shares_ ? std::size_t(job.train().accumulate) : 1),
      collectives_(ranks_, job.train().shards, job.train().accumulate, largest_),
      update_(backend, variables, build_update(job, largest_.graph()),
              {.guard = job.train().skips() ? "guard" : "grad_norm", .arena = &arena_}),
      sum_(ranks_, job.train().shards, ranks.reduction) {
  if (shares_) expect_same_collectives();
}

// A recurrent norm over the batch meets once a time step.
template <class T>
void ShardRunner<T>::expect_same_collectives() const {
  const auto count = [](const Graph& g) {
    return std::ranges::count_if(
        g.outputs(), [](const NamedValue& output) { return output.name.starts_with(kCollective); });
  };
  const auto expected = count(largest_.graph());
  for (const task::Sizes& sizes : shards_->shapes()) {
    check(count(build_shard(job_, sizes, nullptr)) == expected, ErrorKind::kUsage,
          "train.statistics: expected local for a network whose norms over the batch are more in a "
          "longer batch, got {}",
          attr_text(job_.train().statistics));
  }
}

template <class T>
const task::Batch& ShardRunner<T>::batch_of(const Piece& piece) {
  const auto epoch = static_cast<std::uint32_t>(piece.place.epoch);
  return shards_->at(epoch, piece.place.batch * own_.count() + piece.number);
}

template <class T>
Program& ShardRunner<T>::feed(ProgramCache& programs, const task::Batch& batch,
                              const Piece& piece) {
  Program& program = programs.at(batch.sizes);
  feeder_.feed(program, batch,
               {.step = piece.place.step, .first_row = batch.first_row, .items = piece.items});
  return program;
}

// Takes the results of a part of the program, besides the terms of sums.
template <class T>
void ShardRunner<T>::take(const Program& program, std::int64_t part, double& loss,
                          ShardRecord& record) {
  if (outputs_.comes("loss", part)) loss += program.scalar("loss");
  for (std::size_t i = 0; i < monitors_.size(); ++i) {
    if (!outputs_.comes(monitor_output(i), part)) continue;
    double& largest = record.monitored[i];
    largest = std::max(largest, program.scalar(monitor_output(i)));
  }
  if (record.with_rows == 0) outputs_.read_whole<T>(program, part, record.whole);
  if (part == program.collectives()) ++record.with_rows;
}

template <class T>
void ShardRunner<T>::run(const Piece& piece, ShardRecord& record) {
  term_.assign(outputs_.summed_count(), 0);
  const task::Batch& batch = batch_of(piece);
  if (!batch.rows.empty()) {
    Program& program = feed(shard_, batch, piece);
    program.run();
    outputs_.read_summed(program, 0, std::span(term_));
    take(program, 0, record.losses.front(), record);
  }
  micro_sum_.add(term_);
}

template <class T>
ShardRunner<T>::Slot::Slot(ShardRunner& runner)
    : arena(runner.backend_),
      programs(runner.backend_, runner.variables_,
               [&job = runner.job_](const task::Sizes& sizes) {
                 std::vector<nn::Monitor> monitors;  // known already
                 return build_shard(job, sizes, &monitors);
               },
               {.arena = &arena}) {}

// Programs that run in step hold their values at the same time, in arenas of their own, or keep
// some of them for their next turn.
template <class T>
ShardInstance ShardRunner<T>::begin(const Piece& piece) {
  const task::Batch& batch = batch_of(piece);
  if (batch.rows.empty()) return {};
  const auto i = std::size_t(piece.number);
  if (piece.number < alone_) {
    while (slots_.size() <= i) slots_.push_back(std::make_unique<Slot>(*this));
    return {&feed(slots_[i]->programs, batch, piece)};
  }
  Program& program = feed(shard_, batch, piece);
  if (!takes_turns_) return {&program};
  outputs_.expect_same_parts(program);
  if (kept_.size() <= i) kept_.resize(i + 1);
  if (!kept_[i] || kept_[i]->bytes() < program.kept_bytes()) {
    kept_[i] = backend_.allocate(program.kept_bytes());
  }
  return {&program, kept_[i].get()};
}

// Adds up what a part gives: over the shards of a micro-batch, then over the micro-batches.
template <class T>
void ShardRunner<T>::add_part(const Program* program, std::int64_t part, const Piece& piece) {
  const auto [first, count] = outputs_.summed_in(part);
  if (count == 0) return;
  term_.assign(count, 0);
  if (program) outputs_.read_summed(*program, part, std::span(term_));
  sum_.add(term_);
  if ((piece.number + 1) % own_.count() != 0) return;
  const std::span<const T> of_shards = sum_.total();
  term_.assign(of_shards.begin(), of_shards.end());
  micro_sum_.add(term_);
  if (piece.number + 1 < pieces(piece.place)) return;
  std::ranges::copy(micro_sum_.sum(), total_.begin() + std::ptrdiff_t(first));
}

// The norms of all shards and micro-batches wait for each other, so that none runs ahead.
template <class T>
std::vector<ShardRecord> ShardRunner<T>::run_in_step(const Piece& first) {
  const auto at = [&](std::size_t i) {
    Piece piece = first;
    piece.number = std::int64_t(i);
    return piece;
  };
  std::vector<ShardInstance> instances(std::size_t(pieces(first.place)));
  std::vector<ShardRecord> records(std::size_t(own_.count()), records_.empty());
  const auto end = [&](std::int64_t part, std::size_t i) {
    const auto own = std::size_t(own_.count());
    ShardRecord& record = records[i % own];
    const Program* const program = instances[i].program;
    if (program) take(*program, part, record.losses[i / own], record);
    add_part(program, part, at(i));
  };
  total_.resize(outputs_.summed_count());
  collectives_.run(
      instances, [&](std::size_t i) { instances[i] = begin(at(i)); }, end);
  return records;
}

template <class T>
ShardRecord ShardRunner<T>::run_shard(Piece& piece) {
  ShardRecord record = records_.empty();
  for (std::int64_t m = 0; m < micro_batches(piece.place); ++m, ++piece.number) {
    run(piece, record);
  }
  sum_.add(micro_sum_.sum());
  return record;
}

template <class T>
void ShardRunner<T>::start(const StepPlace& place) {
  Piece piece{.place = place, .items = items(place)};
  if (shares_) {
    const std::vector<ShardRecord> own = run_in_step(piece);
    return conclude(place, own, total_);
  }
  std::vector<ShardRecord> own;
  for (std::int64_t shard = own_.first; shard < own_.end; ++shard) own.push_back(run_shard(piece));
  conclude(place, own, sum_.total());
}

template <class T>
void ShardRunner<T>::conclude(const StepPlace& place, const std::vector<ShardRecord>& own,
                              std::span<const T> sum) {
  records_.exchange(own, SignalGuard::received());
  result_ = {.place = place,
             .micro_batches = micro_batches(place),
             .items = items(place),
             .loss = records_.loss(),
             .lr = rate(place)};
  if (is_watched(place.step)) result_.monitored = records_.monitored();
  update(sum);
  result_.grad_norm = update_.scalar("grad_norm");
  has_result_ = true;
}

template <class T>
void ShardRunner<T>::update(std::span<const T> sum) {
  const double with_rows = records_.with_rows();
  check(with_rows > 0, ErrorKind::kInternal, "[shards] an update without a row");
  outputs_.feed_summed(update_, sum);
  outputs_.feed_whole<T>(update_, records_.whole());
  feeder_.feed(update_, {.step = result_.place.step, .items = 1, .rate = result_.lr},
               {.loss = result_.loss, .state_weight = 1 / with_rows});
  update_.run();
}

template <class T>
const StepResult* ShardRunner<T>::next(bool) {
  return std::exchange(has_result_, false) ? &result_ : nullptr;
}

// A value that is not finite reaches all other pieces through a collective and spoils their later
// parts, so the earliest part has the cause.
template <class T>
std::string ShardRunner<T>::first_not_finite(const StepResult& r) {
  double first = std::numeric_limits<double>::infinity();
  std::string mine;
  for (Piece piece{.place = r.place, .items = r.items}; piece.number < pieces(r.place);
       ++piece.number) {
    const task::Batch& batch = batch_of(piece);
    if (batch.rows.empty()) continue;
    Program& program = feed(shard_, batch, piece);
    collectives_.feed_last(program);
    const auto found = program.find_non_finite();
    if (!found || double(found->part) >= first) continue;
    first = double(found->part);
    mine = piece_text(*found, r, piece.number);
    if (first == 0) break;
  }
  const std::vector<double> parts = gathered(ranks_, std::span(&first, 1));
  const auto rank = std::ranges::min_element(parts) - parts.begin();
  const std::string text = gathered(ranks_, mine)[std::size_t(rank)];
  return text.empty() ? "a sum of shards, each of which is finite" : text;
}

// The stream's order is by batch where norms share their statistics, else by shard.
template <class T>
std::string ShardRunner<T>::piece_text(const NonFinite& found, const StepResult& r,
                                       std::int64_t number) const {
  const std::int64_t own = own_.count(), batches = r.micro_batches;
  const std::int64_t shard = own_.first + (shares_ ? number % own : number / batches);
  const std::int64_t batch = r.place.batch + (shares_ ? number / own : number % batches);
  const std::string text = place_text(found, batch);
  return job_.train().shards > 1 ? fmt::format("shard {} of {}", shard, text) : text;
}

template class ShardRunner<float>;
template class ShardRunner<double>;

}  // namespace keel::train
