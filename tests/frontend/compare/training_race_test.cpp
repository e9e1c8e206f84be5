// Training that is followed on several backends.
#include "frontend/compare/verdicts/training_race.h"

#include <set>

#include "tests/frontend/compare/helpers.h"

namespace keel::compare {
namespace {

// A backend with a fault: what one op gives is too large by a factor.
class FaultyBackend : public Backend {
 public:
  FaultyBackend(Backend& right, std::string op, double factor)
      : right_(right), op_(std::move(op)), factor_(factor) {}

  std::string_view name() const override { return right_.name(); }
  std::string description() const override { return right_.description(); }
  DType storage(DType declared) const override { return right_.storage(declared); }
  Prepared prepare(const NodeContext& context) override {
    Prepared prepared = right_.prepare(context);
    if (context.node.op->name != op_) return prepared;
    prepared.bind_rows = nullptr;  // it runs by itself
    prepared.bind_elements = nullptr;
    prepared.bind = [bind = prepared.bind, factor = factor_](const Binding& b) -> Kernel {
      return [kernel = bind(b), y = b.outputs[0], factor] {
        kernel();
        for (std::int64_t e = 0; e < y.elements(); ++e) {
          if (y.type.dtype == DType::kF32) y.as<float>()[e] *= float(factor);
          if (y.type.dtype == DType::kF64) y.as<double>()[e] *= factor;
        }
      };
    };
    return prepared;
  }
  std::unique_ptr<Memory> allocate(std::int64_t bytes) override { return right_.allocate(bytes); }
  std::unique_ptr<Readback> allocate_readback(std::int64_t bytes) override {
    return right_.allocate_readback(bytes);
  }
  Kernel copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) override {
    return right_.copy(dst, src, guard);
  }
  void run(std::span<const Kernel> kernels) override { right_.run(kernels); }

 private:
  Backend& right_;
  std::string op_;
  double factor_;
};

TEST_CASE("race: backends stay together for some steps, and twins one ulp off beside them") {
  const TestBackends backends;
  const train::Job job = test::small_job({"train.batch=16"});
  ModelSubject subject(*backends.reference, job, {.unfused = true});
  const Race race =
      run_race(*backends.reference, backends.all, subject, {.steps = 12, .perturb = true});
  CHECK(race.reference_losses.size() == 12);
  CHECK(race.curves.size() == backends.all.size() + kTwins);
  std::set<double> ends;
  for (const RaceCurve& curve : race.curves) {
    CAPTURE(curve.name);
    CHECK(curve.losses.size() == 12);
    CHECK(curve.distances.back() > 0);
    CHECK(curve.distances.back() < 1e-4);
    CHECK(curve.parted == -1);
    CHECK(curve.growth > 0.5);
    CHECK(curve.growth < 5);
    CHECK(curve.is_twin == (curve.beside == race.curves[0].name));
    ends.insert(curve.distances.back());
  }
  CHECK(ends.size() == race.curves.size());  // each twin goes its own way
  CHECK(race.curves.back().name == race.curves[0].name + " + 1 ulp, twin 8");
  CHECK(race_picture(race, "title").starts_with("<"));
}

TEST_CASE("race: rounding alone is no fault, whatever parts, and a fault is one") {
  const TestBackends backends;
  Backend& right = *backends.all[0];
  for (const char* norm : {"layernorm", "powernorm", "batchnorm", "none"}) {
    for (const char* optimizer : {"sgd", "adam"}) {
      CAPTURE(std::string(norm));
      CAPTURE(std::string(optimizer));
      const train::Job job =
          test::small_job({"train.batch=16", fmt::format("model.norm={}", norm),
                           fmt::format("train.optimizer={}", optimizer), "train.lr=0.01"});
      ModelSubject subject(*backends.reference, job, {.unfused = true});
      const auto verdict_on = [&](Backend& backend) {
        return run_race(*backends.reference, {&backend}, subject, {.steps = 20, .perturb = true})
            .verdicts.at(0);
      };
      const StepVerdict honest = verdict_on(right);
      CAPTURE(honest.text());
      CHECK(honest.is_decided());
      CHECK_FALSE(honest.is_fault());
      CHECK(honest.text().find("rounding explains the difference") != std::string::npos);
      FaultyBackend wrong(right, "relu_backward", 1.001);
      const StepVerdict fault = verdict_on(wrong);
      CAPTURE(fault.text());
      CHECK(fault.is_fault());
      CHECK(fault.further == 20);
      CHECK(fault.text().find("rounding does NOT explain") != std::string::npos);
      CHECK(fault.variable.starts_with("fc1"));
    }
  }
}

TEST_CASE("race: the sign test's count is that of the binomial distribution") {
  // All of 3 tosses are heads with probability 1/8; at least 3 of 4 with 5/16, all 4 with 1/16.
  CHECK(heads_that_tell(3, 0.125) == 3);
  CHECK(heads_that_tell(3, 0.12) == 4);
  CHECK(heads_that_tell(4, 0.32) == 3);
  CHECK(heads_that_tell(4, 0.3) == 4);
  CHECK(heads_that_tell(4, 0.06) == 5);
  // At least 15 of 20: 21700 of 2^20, at least 16: 6196.
  CHECK(heads_that_tell(20, 0.0207) == 15);
  CHECK(heads_that_tell(20, 0.0206) == 16);
  CHECK(heads_that_tell(0, 0.01) == 1);
}

TEST_CASE("race: too few steps give no verdict") {
  const TestBackends backends;
  const train::Job job = test::small_job({"train.batch=16"});
  ModelSubject subject(*backends.reference, job, {.unfused = true});
  FaultyBackend wrong(*backends.all[0], "relu_backward", 1.1);
  const Race race = run_race(*backends.reference, {&wrong}, subject, {.steps = 3, .perturb = true});
  CHECK_FALSE(race.verdicts.at(0).is_decided());
  CHECK_FALSE(race.verdicts.at(0).is_fault());
  CHECK(race.verdicts.at(0).text().find("3 steps are too few") != std::string::npos);
}

TEST_CASE("race: losses that differ by more than a limit have parted") {
  const TestBackends backends;
  const train::Job job = test::small_job({"train.batch=16"});
  ModelSubject subject(*backends.reference, job, {.unfused = true});
  const Race race = run_race(*backends.reference, {backends.all[0]}, subject,
                             {.steps = 5, .perturb = false, .parted = 0});
  CHECK(race.curves[0].parted >= 0);
}

TEST_CASE("race: growth is the factor of an exponential") {
  CHECK(growth_of(std::vector<double>{1, 2, 4, 8}) == doctest::Approx(2));
  CHECK(growth_of(std::vector<double>{0, 3, 0, 27}) == doctest::Approx(3));
  CHECK(growth_of(std::vector<double>{0, 0}) == 1);
}

}  // namespace
}  // namespace keel::compare
