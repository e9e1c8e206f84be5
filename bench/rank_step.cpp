#include "bench/rank_step.h"

#include <algorithm>
#include <chrono>

#include "src/core/error.h"

namespace keel::bench {
namespace {

using StepClock = std::chrono::steady_clock;

double seconds_from(StepClock::time_point start) {
  return std::chrono::duration<double>(StepClock::now() - start).count();
}

// Takes down what passes through a communicator.
class WatchedRanks final : public Communicator {
 public:
  explicit WatchedRanks(Communicator& all) : all_(all) {}

  int rank() const override { return all_.rank(); }
  int size() const override { return all_.size(); }
  std::string description() const override { return all_.description(); }
  void exchange(std::span<const Bytes> to, std::span<const Room> from) override {
    timed([&] { all_.exchange(to, from); });
    sums_ = true;
  }
  // A sum is an exchange of slices, then a gathering of their totals.
  void gather(Bytes mine, std::span<const Room> from) override {
    timed([&] { all_.gather(mine, from); });
    if (std::exchange(sums_, false)) {
      for (const Room room : from) step_.summed_bytes += double(room.size());
    } else {
      ++step_.gatherings;
      step_.gathered_bytes += double(mine.size());
    }
  }
  void add_up(std::span<float> values) override { add_any(values); }
  void add_up(std::span<double> values) override { add_any(values); }
  void wait_for_all() override { all_.wait_for_all(); }
  void end_all(int code) override {
    all_.end_all(code);
    std::_Exit(code);
  }

  // Returns the counts of the calls since the last take(); the caller fills in `seconds` and
  // `items`.
  RankStep take() { return std::exchange(step_, {}); }

 private:
  template <class T>
  void add_any(std::span<T> values) {
    timed([&] { all_.add_up(values); });
    step_.summed_bytes += double(values.size_bytes());
  }
  template <class F>
  void timed(F body) {
    const auto start = StepClock::now();
    body();
    step_.among += seconds_from(start);
  }

  Communicator& all_;
  RankStep step_;
  bool sums_ = false;
};

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Goes from step to step, and from epoch to epoch.
class Walk {
 public:
  Walk(train::Steps& steps, task::Stream& rows) : steps_(steps), rows_(rows) {}

  // Items of the step.
  double go() {
    steps_.start(place_);
    place_.batch += steps_.micro_batches(place_);
    ++place_.step;
    if (place_.batch >= rows_.steps(static_cast<std::uint32_t>(place_.epoch))) {
      place_.batch = 0;
      ++place_.epoch;
    }
    const train::StepResult* result = steps_.next(true);
    check(result != nullptr, ErrorKind::kInternal, "[bench] a step without a result");
    return result->items;
  }

 private:
  train::Steps& steps_;
  task::Stream& rows_;
  train::StepPlace place_;
};

}  // namespace

RankStep bench_rank_step(Backend& backend, const train::Job& job, train::Ranks ranks,
                         std::int64_t steps) {
  constexpr std::int64_t kWarmUp = 2;
  WatchedRanks watched(ranks.all);
  const auto seed = static_cast<std::uint64_t>(job.train().seed);
  const auto rows = job.splits().stream(
      task::Split::kTrain, {.batch = job.train().batch, .shuffle = seed, .shard_range = {}});
  Variables variables(backend, seed);
  const auto runner = train::make_steps(backend, variables, job, *rows, {watched, ranks.reduction});
  runner->initialize();
  Walk walk(*runner, *rows);
  for (std::int64_t i = 0; i < kWarmUp; ++i) walk.go();
  std::vector<double> seconds, among;
  RankStep result;
  for (std::int64_t i = 0; i < steps; ++i) {
    watched.take();
    const auto start = StepClock::now();
    result.items += walk.go() / double(steps);
    seconds.push_back(seconds_from(start));
    const RankStep one = watched.take();
    among.push_back(one.among);
    result.summed_bytes = one.summed_bytes;
    result.gatherings = one.gatherings;
    result.gathered_bytes = one.gathered_bytes;
  }
  result.seconds = median_of(seconds);
  result.among = median_of(among);
  return result;
}

}  // namespace keel::bench
