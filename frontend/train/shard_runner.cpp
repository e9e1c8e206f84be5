#include "frontend/train/shard_runner.h"

#include <algorithm>
#include <utility>

#include "frontend/train/shard_graph.h"
#include "frontend/train/signals.h"
#include "frontend/train/step_runner.h"
#include "src/ops/shard_parts.h"

namespace keel::train {
namespace {

task::StreamOptions shard_options(const TrainOptions& train, ShardRange own) {
  return {.batch = train.batch,
          .shuffle = static_cast<std::uint64_t>(train.seed),
          .portion = {train.shards, own.first, own.end, train.accumulate}};
}

}  // namespace

std::unique_ptr<Steps> make_steps(Backend& backend, Variables& variables, const Job& job,
                                  task::Stream& stream, Ranks ranks) {
  const std::int64_t shards = job.train().shards, processes = ranks.all.size();
  check(shards >= processes, ErrorKind::kUsage,
        "train.shards: expected at least {}, for each of {} processes takes whole shards, got {}; "
        "give a number with --set train.shards=N, which is a part of the recipe",
        processes, processes, shards);
  if (shards == 1) return std::make_unique<StepRunner>(backend, variables, job, stream);
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
      shards_(job.splits().stream(task::Split::kTrain, shard_options(job.train(), own_))),
      shard_(backend, variables,
             [this](const task::Sizes& sizes) {
               watches_.clear();
               return build_shard(job_, sizes, &watches_);
             },
             {.arena = &arena_, .carries = &carries_}),
      largest_(shard_.at(shards_->shapes().front())),
      outputs_(largest_.graph()),
      records_(ranks_, job.train().shards, watches_.size(), outputs_.whole_count()),
      meetings_(ranks_, job.train().shards, largest_),
      update_(backend, variables, build_update(job, largest_.graph()),
              {.guard = job.train().skips() ? "guard" : "grad_norm", .arena = &arena_}),
      sum_(ranks_, job.train().shards, ranks.reduction) {
  if (meetings_.any()) expect_same_meetings();
}

// A recurrent norm over the batch meets once a time step.
template <class T>
void ShardRunner<T>::expect_same_meetings() const {
  const auto count = [](const Graph& g) {
    return std::ranges::count_if(
        g.outputs(), [](const NamedValue& output) { return output.name.starts_with(kMeeting); });
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

// The outputs of the program's last run become the next term of the shard's sum.
template <class T>
void ShardRunner<T>::take(const Program& program, ShardRecord& record) {
  outputs_.read_summed(program, std::span(term_));
  record.loss += program.scalar("loss");
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    double& largest = record.watched[i];
    largest = std::max(largest, program.scalar(watch_output(i)));
  }
  if (record.with_rows++ == 0) outputs_.read_whole<T>(program, record.whole);
}

template <class T>
void ShardRunner<T>::run(const Piece& piece, ShardRecord& record) {
  term_.assign(outputs_.summed_count(), 0);
  const task::Batch& batch = batch_of(piece);
  if (!batch.rows.empty()) {
    Program& program = feed(shard_, batch, piece);
    program.run();
    take(program, record);
  }
  shard_sum_.add(term_);
}

template <class T>
ProgramCache& ShardRunner<T>::programs_of(std::int64_t shard) {
  if (shard == own_.first) return shard_;
  const auto place = std::size_t(shard - own_.first - 1);
  while (others_.size() <= place) {
    others_.push_back(std::make_unique<Slot>(*this));
  }
  return others_[place]->programs;
}

template <class T>
ShardRunner<T>::Slot::Slot(ShardRunner& runner)
    : arena(runner.backend_),
      programs(runner.backend_, runner.variables_,
               [&job = runner.job_](const task::Sizes& sizes) {
                 std::vector<nn::Watch> watches;  // known already
                 return build_shard(job, sizes, &watches);
               },
               {.arena = &arena}) {}

// The norms of all shards wait for each other, so that none runs ahead.
template <class T>
std::vector<ShardRecord> ShardRunner<T>::run_in_step(Piece piece) {
  std::vector<Program*> programs;
  for (std::int64_t shard = own_.first; shard < own_.end; ++shard, ++piece.number) {
    const task::Batch& batch = batch_of(piece);
    programs.push_back(batch.rows.empty() ? nullptr : &feed(programs_of(shard), batch, piece));
  }
  meetings_.run(programs);
  std::vector<ShardRecord> records;
  for (const Program* program : programs) {
    records.push_back(records_.empty());
    term_.assign(outputs_.summed_count(), 0);
    if (program) take(*program, records.back());
    sum_.add(term_);
  }
  return records;
}

template <class T>
ShardRecord ShardRunner<T>::run_shard(Piece& piece) {
  ShardRecord record = records_.empty();
  for (std::int64_t m = 0; m < micro_batches(piece.place); ++m, ++piece.number) {
    run(piece, record);
  }
  sum_.add(shard_sum_.sum());
  return record;
}

template <class T>
void ShardRunner<T>::start(const StepPlace& place) {
  Piece piece{.place = place, .items = items(place)};
  if (meetings_.any()) return conclude(place, run_in_step(piece));
  std::vector<ShardRecord> own;
  for (std::int64_t shard = own_.first; shard < own_.end; ++shard) own.push_back(run_shard(piece));
  conclude(place, own);
}

template <class T>
void ShardRunner<T>::conclude(const StepPlace& place, const std::vector<ShardRecord>& own) {
  records_.exchange(own, SignalGuard::received());
  result_ = {.place = place,
             .micro_batches = micro_batches(place),
             .items = items(place),
             .loss = records_.loss(),
             .lr = rate(place)};
  if (is_watched(place.step)) result_.watched = records_.watched();
  update();
  result_.grad_norm = update_.scalar("grad_norm");
  has_result_ = true;
}

template <class T>
void ShardRunner<T>::update() {
  const double with_rows = records_.with_rows();
  check(with_rows > 0, ErrorKind::kInternal, "[shards] an update without a row");
  outputs_.feed_summed(update_, sum_.total());
  outputs_.feed_whole<T>(update_, records_.whole());
  feeder_.feed(update_, {.step = result_.place.step, .items = 1, .rate = result_.lr},
               {.loss = result_.loss, .share = 1 / with_rows});
  update_.run();
}

template <class T>
const StepResult* ShardRunner<T>::next(bool) {
  return std::exchange(has_result_, false) ? &result_ : nullptr;
}

template <class T>
std::string ShardRunner<T>::first_not_finite(const StepResult& r) {
  Piece piece{.place = r.place, .items = r.items};
  std::string mine;
  for (; mine.empty() && piece.number < pieces(r.place); ++piece.number) {
    const task::Batch& batch = batch_of(piece);
    if (batch.rows.empty()) continue;
    Program& program = feed(shard_, batch, piece);
    meetings_.feed_last(program);
    const auto found = program.find_non_finite();
    if (!found) continue;
    const std::int64_t shard = own_.first + piece.number / r.micro_batches;
    mine = fmt::format("shard {} of {}", shard,
                       place_text(*found, r.place.batch + piece.number % r.micro_batches));
  }
  for (const std::string& text : gathered(ranks_, mine)) {
    if (!text.empty()) return text;
  }
  return "a sum of shards, each of which is finite";
}

template class ShardRunner<float>;
template class ShardRunner<double>;

}  // namespace keel::train
