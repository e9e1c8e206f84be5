// The small MLP: its formula, and first values that come from the first batch.
#include "studies/mlp_network.h"

#include <doctest/doctest.h>

#include <Eigen/Dense>

#include "backends/reference/backend.h"
#include "frontend/data/table_rows.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "tests/studies/matrix.h"

namespace keel::study {
namespace {

constexpr std::string_view kSmallMlp = R"(
[model]
train_rows = 32
test_rows = 16
features = 5
hidden = 4
classes = 3
[train]
batch = 16
max_steps = 1
lr = 1e-30
)";

train::Job small_mlp(const std::string& norm) {
  return mini_job(std::make_unique<Mlp>(), kSmallMlp, 7,
                  {{"model.norm", norm}, {"model.order", "stream"}});
}

TEST_CASE("mlp network: a norm before each hidden relu, none at the logits") {
  const train::Job job = small_mlp("layerscaling");
  reference::ReferenceBackend backend;
  Training training(backend, job);
  const auto layer = [&](const std::string& name, const Matrix& h) -> Matrix {
    const Matrix bias = matrix(training.variables().read(name + "/bias"));
    return (h * matrix(training.variables().read(name + "/weight"))).rowwise() +
           Eigen::RowVectorXd(bias.col(0));
  };
  const train::Job same = mini_job(std::make_unique<Mlp>(), kSmallMlp, 7, {});
  const auto& splits = dynamic_cast<const data::TableSplits&>(same.splits());
  const data::TensorDataset rows = splits.table(task::Split::kTrain).take(16);
  Matrix h = matrix(rows.column("x"));
  for (const char* name : {"fc1", "fc2"}) {
    const Matrix a = layer(name, h);
    const auto size = (a.array().square().rowwise().mean() + 1e-5).sqrt();
    h = (a.array().colwise() / size).cwiseMax(0);
  }
  const Matrix logits = layer("logits", h);
  const auto labels = rows.column("label").as<std::int32_t>();
  double loss = 0;
  for (std::int64_t i = 0; i < 16; ++i) {
    const double total = logits.row(i).array().exp().sum();
    loss += (std::log(total) - logits(i, labels[std::size_t(i)])) / 16;
  }
  training.run();
  CHECK(training.traces().at("loss")[0] == doctest::Approx(loss).epsilon(1e-12));
}

TEST_CASE("mlp network: weight norm takes its first lengths from the first batch") {
  const train::Job job = small_mlp("weightnorm");
  reference::ReferenceBackend backend;
  Training training(backend, job);
  for (const char* name : {"fc1/norm/gain", "fc2/norm/gain"}) {
    CHECK(training.variables().read(name).at(0) != 1);
  }
}

}  // namespace
}  // namespace keel::study
