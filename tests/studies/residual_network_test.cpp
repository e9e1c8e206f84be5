// The miniatures' network: its formula, and the distances of batch and running statistics.
#include "studies/residual_network.h"

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <utility>

#include "backends/reference/backend.h"
#include "frontend/data/table_rows.h"
#include "frontend/train/step_graph.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "tests/studies/matrix.h"
#include "tests/support/checks.h"

namespace keel::study {
namespace {

constexpr std::string_view kSmallResidual = R"(
[model]
data = "sentences"
train_rows = 32
test_rows = 16
features = 3
width = 4
hidden = 5
blocks = 2
classes = 3
[train]
batch = 16
max_steps = 2
lr = 1e-30
)";

train::Job small_residual(const task::OptionValues& settings) {
  train::Job job = mini_job(std::make_unique<Residual>(), kSmallResidual, 7, settings);
  return std::move(job).with({{"model.order", "stream"}});
}

Matrix scaled(const Matrix& x) {
  const auto quadratic_mean = x.array().square().rowwise().mean() + 1e-5;
  return x.array().colwise() * quadratic_mean.sqrt().inverse();
}

// The weights and the data of a network, and what it should compute.
struct Judge {
  explicit Judge(const train::Job& job)
      : variables(backend, 7),
        data(mini_job(std::make_unique<Residual>(), kSmallResidual, 7, {})),
        splits(data.splits()) {
    variables.declare(train::build_step(job));
  }
  Matrix weight(const std::string& name) const { return matrix(variables.read(name + "/weight")); }
  Matrix branch(const std::string& block, const Matrix& h) const {
    return (h * weight(block + "/a")).cwiseMax(0) * weight(block + "/b");
  }
  const data::TensorDataset& train() const {
    return dynamic_cast<const data::TableSplits&>(splits).table(task::Split::kTrain);
  }
  Matrix stem(std::int64_t first) const {
    return matrix(train().slice(first, 16).column("x")) * weight("in");
  }
  double loss(const Matrix& h) const {
    const Matrix logits = h * weight("logits");
    const auto labels = train().column("label").as<std::int32_t>();
    double sum = 0;
    for (std::int64_t i = 0; i < 16; ++i) {
      sum += std::log(logits.row(i).array().exp().sum()) - logits(i, labels[std::size_t(i)]);
    }
    return sum / 16;
  }

  reference::ReferenceBackend backend;
  Variables variables;
  train::Job data;  // whose rows are those of the job, as a table
  const task::Splits& splits;
};

double first_loss(Judge& judge, const train::Job& job) {
  Training training(judge.backend, job);
  training.run();
  return training.traces().at("loss")[0];
}

TEST_CASE("residual network: norms in the branches") {
  for (const bool doubled : {false, true}) {
    const train::Job job = small_residual(
        {{"model.norm", "layerscaling"}, {"model.layer_scale", doubled ? "true" : "false"}});
    Judge judge(job);
    const auto norm = [&](const Matrix& x) { return doubled ? scaled(scaled(x)) : scaled(x); };
    Matrix h = judge.stem(0);
    for (const char* block : {"block1", "block2"}) h += judge.branch(block, norm(h));
    CHECK(first_loss(judge, job) == doctest::Approx(judge.loss(norm(h))).epsilon(1e-12));
  }
}

TEST_CASE("residual network: norms after the sums") {
  const train::Job job = small_residual({{"model.norm", "layerscaling"}, {"model.post", "true"}});
  Judge judge(job);
  Matrix h = judge.stem(0);
  for (const char* block : {"block1", "block2"}) h = scaled(h + judge.branch(block, h));
  CHECK(first_loss(judge, job) == doctest::Approx(judge.loss(h)).epsilon(1e-12));
}

// |batch - running| / width in two steps of a running statistic that keeps 0.9, from `start` on.
void check_distances(const std::vector<double>& trace, double start, const Matrix& first,
                     const Matrix& second) {
  const Matrix before = Matrix::Constant(1, 4, start);
  const Matrix after = 0.9 * before + 0.1 * first;
  REQUIRE(trace.size() == 2);
  CHECK(trace[0] == doctest::Approx((first - before).norm() / 4).epsilon(1e-12));
  CHECK(trace[1] == doctest::Approx((second - after).norm() / 4).epsilon(1e-12));
}

Matrix column_mean(const Matrix& x) { return x.colwise().mean(); }
Matrix quadratic_mean(const Matrix& x) { return column_mean(x.array().square()); }
Matrix variance(const Matrix& x) { return quadratic_mean(x.rowwise() - x.colwise().mean()); }

TEST_CASE("residual network: distances are taken before the state takes in the batch") {
  const train::Job job = small_residual({{"model.norm", "batchnorm"}});
  Judge judge(job);
  Training training(judge.backend, job);
  training.run({.mark = [](Graph&) {}});
  const auto& traces = training.traces();
  const Matrix first = judge.stem(0), second = judge.stem(16);
  check_distances(traces.at("distance/running_mean"), 0, column_mean(first), column_mean(second));
  check_distances(traces.at("distance/running_var"), 1, variance(first), variance(second));
  CHECK(traces.count("distance/psi2") == 0);
}

TEST_CASE("residual network: the layer scaling comes before the statistics") {
  const train::Job job = small_residual({{"model.norm", "pn_v"}, {"model.layer_scale", "true"}});
  Judge judge(job);
  Training training(judge.backend, job);
  training.run({.mark = [](Graph&) {}});
  check_distances(training.traces().at("distance/psi2"), 1, quadratic_mean(scaled(judge.stem(0))),
                  quadratic_mean(scaled(judge.stem(16))));
}

TEST_CASE("residual network: an unknown kind of data is refused") {
  test::check_refused([] { small_residual({{"model.data", "images"}}); }, "model.data: expected");
}

}  // namespace
}  // namespace keel::study
