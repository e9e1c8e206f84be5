// The deep linear network and its data.
#include "tests/models/helpers.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

TEST_CASE("deep_linear: 25 layers, of which all but the last have a norm") {
  const Graph step =
      train::build_step(small_job({"model.layers=25", "model.norm=batchnorm"}, "deep_linear"));
  CHECK(count_parameters(step) == 24 * (100 + 20) + 100 + 10);
}

TEST_CASE("deep_linear: targets are one linear map of the inputs, whatever the part") {
  const train::Job job = small_job({"model.width=3", "model.samples=40"}, "deep_linear");
  const auto values = [&](task::Split split, std::int64_t rows) {
    const auto stream = job.splits().stream(split, {.batch = rows, .shuffle = {}});
    const task::Batch& batch = stream->at(0, 0);
    return std::pair(batch.values[0].clone(), batch.values[1].clone());
  };
  const auto [x, t] = values(task::Split::kTrain, 40);
  const auto [valid_x, valid_t] = values(task::Split::kValid, 8);
  // Three rows give the map by Cramer's rule; all others have to follow it.
  const auto det = [](const double(&m)[3][3]) {
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
  };
  for (std::int64_t unit = 0; unit < 3; ++unit) {
    double rows[3][3], map[3];
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) rows[i][j] = x.at(3 * i + j);
    }
    for (int column = 0; column < 3; ++column) {
      double replaced[3][3];
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) replaced[i][j] = j == column ? t.at(3 * i + unit) : rows[i][j];
      }
      map[column] = det(replaced) / det(rows);
    }
    for (const auto& [inputs, targets, count] :
         {std::tuple{&x, &t, 40}, std::tuple{&valid_x, &valid_t, 8}}) {
      for (std::int64_t row = 0; row < count; ++row) {
        double expected = 0;
        for (int j = 0; j < 3; ++j) expected += map[j] * inputs->at(3 * row + j);
        CHECK(targets->at(3 * row + unit) == doctest::Approx(expected).epsilon(1e-4));
      }
    }
  }
  CHECK(x.at(0) != valid_x.at(0));
}

TEST_CASE("deep_linear: the loss is the mean square of the rest") {
  const train::Job job =
      small_job({"model.layers=1", "model.norm=none", "train.batch=4"}, "deep_linear");
  const auto backend = make_backend("reference");
  Variables variables(*backend, 1);
  Program step(*backend, variables, train::build_step(job), {.guard = "grad_norm"});
  variables.write("out/weight", Tensor(DType::kF32, {10, 10}));
  const std::vector<std::int64_t> rows = first_rows(4);
  test::Rows(job).feed(step, rows);
  step.feed("lr", Tensor::scalar(0.0f));
  step.feed("step", Tensor::of<std::int32_t>({}, {0}));
  step.run();
  const auto stream = job.splits().stream(task::Split::kTrain, {.batch = 4, .shuffle = {}});
  const Tensor t = stream->pick(rows).values[1].clone();
  double squares = 0;
  for (std::int64_t e = 0; e < t.elements(); ++e) squares += t.at(e) * t.at(e);
  CHECK(step.scalar("loss") == doctest::Approx(squares / 40).epsilon(1e-6));
}

TEST_CASE("deep_linear: refusals") {
  test::check_refused([] { small_job({"data.source=/tmp"}, "deep_linear"); },
                      "data.source: expected builtin, for deep_linear makes its data");
  test::check_refused([] { small_job({"model.layers=0"}, "deep_linear"); }, "model.layers:");
}

}  // namespace
}  // namespace keel::models
