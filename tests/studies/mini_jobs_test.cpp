// The miniatures' training: a few steps show what normalization does, and the same ones again.
#include "studies/mini_jobs.h"

#include <doctest/doctest.h>

#include <numbers>

#include "backends/backends.h"
#include "studies/memory_training.h"
#include "studies/residual_network.h"
#include "studies/summary.h"
#include "tests/support/checks.h"

namespace keel::study {
namespace {

constexpr std::string_view kShort = R"(
[model]
hidden_variance = 2
logit_variance = 0.5
train_rows = 1000
test_rows = 100
[train]
batch = 64
max_steps = 40
lr = 1e-3
warmup = 20
)";

train::Job short_run(const std::string& norm, std::uint64_t seed = 0,
                     const std::string& order = "drawn") {
  return mini_job(std::make_unique<Residual>(), kShort, seed,
                  {{"model.norm", norm}, {"model.order", order}});
}

std::vector<double> losses(const train::Job& job) {
  const auto backend = make_backend(default_backend());
  Training training(*backend, job);
  training.run();
  return training.traces().at("loss");
}

TEST_CASE("mini training: a deep network learns with a norm and not without") {
  const auto backend = make_backend(default_backend());
  const train::Job normed = short_run("layernorm"), bare = short_run("none");
  Training with(*backend, normed), without(*backend, bare);
  CHECK(gradient_norm(*backend, with.variables(), normed, "stem") < 0.3);
  CHECK(gradient_norm(*backend, without.variables(), bare, "stem") > 30);
  const double before = with.evaluate(task::Split::kTrain).loss;
  with.run();
  without.run();
  CHECK(with.evaluate(task::Split::kTrain).loss < before - 0.4);
  CHECK(without.evaluate(task::Split::kTrain).loss > 5);
  CHECK(with.evaluate(task::Split::kTest).rows == 100);
}

TEST_CASE("mini training: a seed decides every loss") {
  const std::vector<double> first = losses(short_run("layernorm"));
  CHECK(first.size() == 40);
  CHECK(first == losses(short_run("layernorm")));
  CHECK(first != losses(short_run("layernorm", 1)));
}

TEST_CASE("mini training: a stream is read once and may not end early") {
  test::check_refused([] { losses(short_run("layernorm", 0, "stream")); },
                      "[rows] expected at most 16 updates");
}

// Weights of size lr in so many blocks are beyond float64 too.
TEST_CASE("mini training: a run that diverges stops, and is not evaluated") {
  const auto backend = make_backend(default_backend());
  const train::Job job =
      mini_job(std::make_unique<Residual>(), kShort, 0,
               {{"model.norm", "none"}, {"model.blocks", "40"}, {"train.lr", "1e5"}});
  Training training(*backend, job);
  test::check_refused([&] { training.run(); }, "step ", "loss", ErrorKind::kDiverged);
  test::check_refused([&] { training.evaluate(task::Split::kTest); }, "[residual] evaluation",
                      "loss", ErrorKind::kDiverged);
}

TEST_CASE("mini training: an output that the model does not mark is refused") {
  const auto backend = make_backend(default_backend());
  const train::Job job = short_run("layernorm");
  Training training(*backend, job);
  test::check_refused([&] { gradient_norm(*backend, training.variables(), job, "trunk"); },
                      "[residual] no output", "trunk");
}

// The probability that Student's t with `freedom` degrees of freedom is below `t` > 0: half, and
// the density's integral from 0 on, by Simpson's rule.
double student_below(double t, double freedom) {
  const double scale = std::exp(std::lgamma((freedom + 1) / 2) - std::lgamma(freedom / 2)) /
                       std::sqrt(freedom * std::numbers::pi);
  const auto density = [&](double x) {
    return scale * std::pow(1 + x * x / freedom, -(freedom + 1) / 2);
  };
  constexpr int kParts = 2000;
  double sum = density(0) + density(t);
  for (int i = 1; i < kParts; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(t * i / kParts);
  return 0.5 + sum * t / kParts / 3;
}

TEST_CASE("study summary: the t test is one-sided at 5 %, for every number of seeds") {
  for (int n = 2; n <= 20; ++n) {
    CAPTURE(n);
    std::vector<double> values(std::size_t(n), 0.0);
    values[0] = 1;  // mean 1 / n, and the squares sum up to 1 - 1 / n
    const double error = std::sqrt((1 - 1.0 / n) / (n - 1) / n);
    const double t = (1.0 / n - mean_at_least(values)) / error;
    const double below = student_below(t, n - 1);
    CHECK(below >= 0.95 - 5e-5);
    if (n <= 11) CHECK(below <= 0.95 + 5e-5);
    if (n > 11) CHECK(below < 0.96);  // the last quantile of the table serves for all of them
  }
}

TEST_CASE("study summary: a mean over seeds is significant by a t test, by hand") {
  // Mean 2, deviation 1, standard error 1 / sqrt(3), 2 degrees of freedom: t = 2.920.
  CHECK(mean_at_least(std::vector{1.0, 2.0, 3.0}) ==
        doctest::Approx(2 - 2.920 / std::sqrt(3)).epsilon(1e-12));
  // Beyond ten degrees of freedom the last quantile serves, which is on the safe side.
  // The deviation of ten values 0 and ten values 1 is sqrt(5 / 19).
  std::vector<double> twenty(20, 0);
  std::fill_n(twenty.begin(), 10, 1);
  CHECK(mean_at_least(twenty) ==
        doctest::Approx(0.5 - 1.812 * std::sqrt(5.0 / 19 / 20)).epsilon(1e-12));
  test::check_refused([] { mean_at_least(std::vector{1.0}); }, "[mean_at_least] values");
  Result result;
  result.above_zero_over_seeds("surely", std::vector{1.0, 1.1, 0.9});
  result.above_zero_over_seeds("by chance", std::vector{1.0, 3.0, -0.5});
  result.above_zero_over_seeds("two seeds", std::vector{1.0, 1.0});
  CHECK(result.checks[0].holds);
  CHECK_FALSE(result.checks[1].holds);
  CHECK(result.checks[1].judged);
  CHECK_FALSE(result.checks[2].judged);
}

TEST_CASE("study summary: quantiles, differences, numbers in a row") {
  CHECK(quantile({4, 1, 3, 2}, 0.5) == doctest::Approx(2.5));
  CHECK(quantile({4, 1, 3, 2}, 0) == 1);
  CHECK(quantile({4, 1, 3, 2}, 1) == 4);
  CHECK(quantile({5}, 0.99) == 5);
  test::check_refused([] { quantile({}, 0.5); }, "[quantile] values: expected some");
  CHECK(differences(std::vector{3.0, 1.0}, std::vector{1.0, 2.0}) == std::vector{2.0, -1.0});
  CHECK(joined(std::vector{0.5, 0.251, -2.0}, 2) == "0.50/0.25/-2.00");
}

}  // namespace
}  // namespace keel::study
