#include "tests/support/trace_task.h"

#include <cmath>

#include "frontend/nn/carry.h"
#include "frontend/nn/layers.h"
#include "frontend/task/task.h"
#include "src/core/rng.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::test {
namespace {

constexpr std::int64_t kUnits = 3;

class TraceNetwork final : public task::Network {
 public:
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    const std::int64_t rows = sizes.at(0);
    return {{"x", {DType::kF32, {rows, 1}}},
            {"y", {DType::kF32, {rows, 1}}},
            {"begins", {DType::kU8, {rows}}, 1}};
  }
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override {
    Graph& g = net.graph;
    const nn::Linear w(net, "w", 1, kUnits), u(net, "u", kUnits, kUnits), v(net, "v", kUnits, 1);
    const auto scope = g.scope("cell");
    const nn::Carry carry(net, "h", {g.shape(in["x"])[0], kUnits}, in["begins"]);
    const Value h = ops::tanh(g, ops::add(g, w(in["x"]), u(carry.value())));
    carry.leave(h);
    const Value sum = ops::sum(g, ops::square(g, ops::sub(g, v(h), in["y"])));
    return {sum, {{"error", sum}}, {{"h", h}}};
  }
};

// One batch a step, whatever batch the recipe asks for.
class TraceStream final : public task::Stream {
 public:
  TraceStream(std::int64_t lanes, std::uint64_t seed, std::int64_t spoilt_step)
      : lanes_(lanes), spoilt_step_(spoilt_step), random_(seed, 7) {
    batch_.sizes = {lanes};
    batch_.values.emplace_back(DType::kF32, Shape{lanes, 1});
    batch_.values.emplace_back(DType::kF32, Shape{lanes, 1});
    batch_.values.emplace_back(DType::kU8, Shape{lanes});
    batch_.rows.resize(std::size_t(lanes));
    batch_.items = double(lanes);
  }

  const std::string& source() const override { return source_; }
  std::int64_t rows() const override { return lanes_ * kTraceSteps; }
  std::int64_t steps(std::uint32_t) override { return kTraceSteps; }
  double items(std::uint32_t, std::int64_t) override { return double(lanes_); }
  const task::Batch& at(std::uint32_t, std::int64_t step) override {
    for (std::int64_t lane = 0; lane < lanes_; ++lane) put(lane, step);
    if (step == spoilt_step_) batch_.values[0].as<float>()[0] = NAN;
    return batch_;
  }
  const task::Batch& pick(std::span<const std::int64_t>) override { return at(0, 0); }
  std::vector<task::Sizes> shapes() const override { return {{lanes_}}; }

 private:
  // Two sequences lie in a lane: one begins with the epoch, the other 4, 5, ... steps later.
  static bool begins(std::int64_t lane, std::int64_t step) { return step == 0 || step == 4 + lane; }
  float x(std::int64_t lane, std::int64_t step) const {
    return float(random_.uniform(std::uint64_t(lane * kTraceSteps + step)) - 0.5);
  }
  float y(std::int64_t lane, std::int64_t step) const {
    const float before = begins(lane, step) ? 0 : y(lane, step - 1);
    return 0.6f * before + x(lane, step);
  }
  void put(std::int64_t lane, std::int64_t step) {
    const auto row = std::size_t(lane);
    batch_.values[0].as<float>()[row] = x(lane, step);
    batch_.values[1].as<float>()[row] = y(lane, step);
    batch_.values[2].as<std::uint8_t>()[row] = begins(lane, step);
    batch_.rows[row] = lane * kTraceSteps + step;
  }

  std::string source_ = "made up";
  std::int64_t lanes_, spoilt_step_;
  Philox random_;
  task::Batch batch_;
};

class TraceSplits final : public task::Splits {
 public:
  explicit TraceSplits(std::int64_t spoilt_step) : spoilt_step_(spoilt_step) {}
  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions&) const override {
    const bool trains = split == task::Split::kTrain;
    return std::make_unique<TraceStream>(trains ? 4 : 3, std::uint64_t(split) + 1,
                                         trains ? spoilt_step_ : -1);
  }

 private:
  std::int64_t spoilt_step_;
};

struct TraceOptions {
  std::int64_t spoilt_step = -1;
  static constexpr auto fields() {
    return std::tuple{option("spoilt_step", &TraceOptions::spoilt_step,
                             "the step of every epoch that has a NaN, or -1")};
  }
  void validate() const {}
};

class TraceTask final : public task::TaskWithOptions<TraceOptions> {
 public:
  std::string_view name() const override { return "trace"; }
  std::string_view summary() const override { return "the trace of a sequence"; }
  std::vector<task::MetricInfo> metrics() const override {
    return {{"error", "", false, task::mean_of}};
  }
  task::Prepared prepare(const task::DataRequest&, const task::Assets*) const override {
    return {restore({}), std::make_shared<TraceSplits>(options_.spoilt_step)};
  }
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override {
    return std::make_shared<TraceNetwork>();
  }
};

}  // namespace

train::Job trace_job(const Settings& settings) {
  const Settings own = {"train.epochs=2", "train.batch=4", "train.lr=0.02"};
  return job_of(std::make_unique<TraceTask>(), own + settings);
}

}  // namespace keel::test
