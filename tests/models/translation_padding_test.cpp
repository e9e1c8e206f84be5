// Nothing of a translation's training depends on what stands after the ends of sentences.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "backends/backends.h"
#include "frontend/train/step_runner.h"
#include "models/translation/pair_batch.h"
#include "tests/support/small_run.h"

namespace keel::models {
namespace {

// A stream whose padding is an ordinary word. Of its methods a step needs these.
class OtherPadding final : public task::Stream {
 public:
  explicit OtherPadding(std::unique_ptr<task::Stream> inner) : inner_(std::move(inner)) {}

  const std::string& source() const override { return inner_->source(); }
  std::int64_t rows() const override { return inner_->rows(); }
  std::int64_t steps(std::uint32_t epoch) override { return inner_->steps(epoch); }
  double items(std::uint32_t epoch, std::int64_t step) override {
    return inner_->items(epoch, step);
  }
  const task::Batch& at(std::uint32_t epoch, std::int64_t step) override {
    return repainted(inner_->at(epoch, step));
  }
  const task::Batch& pick(std::span<const std::int64_t> rows) override {
    return repainted(inner_->pick(rows));
  }
  std::vector<task::Sizes> shapes() const override { return inner_->shapes(); }

  std::int64_t painted() const { return painted_; }

 private:
  void repaint(const Tensor& mask, Tensor& words) {
    constexpr std::int32_t kWord = 7;
    const std::span<const std::uint8_t> known = mask.as<std::uint8_t>();
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (known[i] != 0) continue;
      words.as<std::int32_t>()[i] = kWord;
      ++painted_;
    }
  }
  const task::Batch& repainted(const task::Batch& batch) {
    batch_ = {.sizes = batch.sizes, .values = {}, .rows = batch.rows, .items = batch.items};
    for (const Tensor& value : batch.values) batch_.values.push_back(value.to(value.dtype()));
    repaint(batch_.values[kSourceMask], batch_.values[kSource]);
    repaint(batch_.values[kTargetMask], batch_.values[kTargetIn]);
    return batch_;
  }

  std::unique_ptr<task::Stream> inner_;
  task::Batch batch_;
  std::int64_t painted_ = 0;
};

// Two updates on a stream: the losses, and what they leave after.
struct Trained {
  std::unique_ptr<Backend> backend = make_backend(default_backend());
  Variables variables{*backend, 3};
  std::vector<double> losses;

  Trained(const train::Job& job, task::Stream& stream) {
    train::StepRunner steps(*backend, variables, job, stream);
    steps.initialize();
    for (std::int64_t step = 0; step < 2; ++step) {
      steps.start({.step = step, .epoch = 0, .batch = step});
      losses.push_back(steps.next(true)->loss);
    }
  }
};

TEST_CASE("translation: what padding holds changes no bit of loss, weights and statistics") {
  for (const char* norm : {"layernorm", "batchnorm", "powernorm{warmup=1}", "adanorm"}) {
    CAPTURE(std::string(norm));
    const train::Job job =
        test::small_job({std::string("model.norm=") + norm, "train.batch=96"}, "translation");
    const task::Splits& data = job.splits();
    const auto rows = [&] { return data.stream(task::Split::kTrain, {.batch = 96, .shuffle = 1}); };
    const std::unique_ptr<task::Stream> as_it_is = rows();
    OtherPadding painted(rows());
    const Trained one(job, *as_it_is), other(job, painted);
    REQUIRE(painted.painted() > 20);
    CHECK(one.losses == other.losses);
    std::int64_t statistics = 0;
    for (const auto& [name, variable] : one.variables.all()) {
      CAPTURE(name);
      statistics += name.ends_with("/running_mean");
      const Tensor a = one.variables.read(name, true), b = other.variables.read(name, true);
      CHECK(std::memcmp(a.data(), b.data(), std::size_t(a.bytes())) == 0);
    }
    CHECK((statistics > 0) == (std::string_view(norm) == "batchnorm"));
  }
}

}  // namespace
}  // namespace keel::models
