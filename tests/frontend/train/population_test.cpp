// Population statistics by a pass over the training rows, checked against means computed by hand.
#include "frontend/train/population.h"

#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "frontend/train/evaluator.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"

namespace keel::train {
namespace {

using test::small_job;

// A network with first values, ready to be evaluated.
struct Loaded {
  reference::ReferenceBackend backend;
  Job job;
  Variables variables{backend, 5};
  Evaluator evaluator{backend, variables, job};

  explicit Loaded(const test::Settings& settings, std::string_view model = "mnist_mlp")
      : job(small_job(settings, model)) {
    evaluator.declare();
  }
  std::vector<double> read(const std::string& name) const {
    const Tensor values = variables.read(name, true).to(DType::kF64);
    return {values.as<double>().begin(), values.as<double>().end()};
  }
  void pass() { take_population_statistics(backend, variables, job); }
};

// The mean over the batches of the first epoch of a batch's mean, variance and quadratic mean, of
// feature c of the first layer.
struct Expected {
  double mean = 0, variance = 0, square = 0;
};

Expected expected_of(const Loaded& net, std::size_t c) {
  const std::vector<double> weight = net.read("fc1/weight");
  const std::size_t units = net.read("fc1/norm/gain").size(), inputs = weight.size() / units;
  const TrainOptions& train = net.job.train();
  const auto rows = net.job.splits().stream(
      task::Split::kTrain, {.batch = train.batch, .shuffle = std::uint64_t(train.seed)});
  const std::int64_t steps = rows->steps(0);
  Expected expected;
  for (std::int64_t step = 0; step < steps; ++step) {
    const Tensor images = rows->at(0, step).values[0].to(DType::kF64);
    const std::size_t n = std::size_t(images.shape()[0]);
    double sum = 0, square = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double h = 0;
      for (std::size_t k = 0; k < inputs; ++k) {
        h += images.as<double>()[i * inputs + k] * weight[k * units + c];
      }
      sum += h / double(n);
      square += h * h / double(n);
    }
    expected.mean += sum / double(steps);
    expected.square += square / double(steps);
    expected.variance += (square - sum * sum) / double(steps);
  }
  return expected;
}

TEST_CASE("population statistics: the means over the batches of an epoch") {
  for (const char* norm : {"batchnorm", "batchnorm{keep=0.99}", "noisybatchnorm", "pn_v"}) {
    CAPTURE(norm);
    Loaded net({std::string("model.norm=") + norm});
    net.pass();
    for (const std::size_t c : {0, 7, 15}) {
      const Expected expected = expected_of(net, c);
      if (std::string_view(norm) == "pn_v") {
        CHECK(net.read("fc1/norm/psi2")[c] == doctest::Approx(expected.square).epsilon(1e-10));
        continue;
      }
      CHECK(net.read("fc1/norm/running_mean")[c] == doctest::Approx(expected.mean).epsilon(1e-10));
      CHECK(net.read("fc1/norm/running_var")[c] ==
            doctest::Approx(expected.variance).epsilon(1e-10));
    }
  }
}

TEST_CASE("population statistics: the trained averages do not matter, the weights stay") {
  Loaded net({"model.norm=batchnorm"}), other({"model.norm=batchnorm"});
  const std::vector<double> weight = net.read("fc1/weight");
  other.variables.write("fc2/norm/running_mean",
                        Tensor::of<double>({16}, std::vector<double>(16, 3.5)));
  net.pass();
  other.pass();
  CHECK(other.read("fc2/norm/running_mean") == net.read("fc2/norm/running_mean"));
  CHECK(net.read("fc1/weight") == weight);
}

// In evaluation, statistics of the right batch are those of training.
TEST_CASE("population statistics: one batch that is the whole split evaluates as it trains") {
  Loaded net({"model.norm=batchnorm", "train.batch=275"});
  net.pass();
  const auto rows = net.job.splits().stream(task::Split::kTrain, {.batch = 275, .shuffle = {}});
  const double loss = net.evaluator.run(*rows).loss;
  Loaded trained({"model.norm=batchnorm", "train.batch=275"});
  CHECK(trained.evaluator.run(*rows).loss != doctest::Approx(loss).epsilon(1e-3));
  net.pass();  // again, from its own result
  CHECK(net.evaluator.run(*rows).loss == doctest::Approx(loss).epsilon(1e-12));
}

// As in training, also where an update is longer than an epoch.
TEST_CASE("population statistics: micro-batches that share their statistics are one batch") {
  const auto taken = [](test::Settings settings) {
    settings.push_back("model.norm=batchnorm");
    Loaded net(settings);
    net.pass();
    return net.read("fc2/norm/running_var");
  };
  const std::vector<double> whole = taken({"train.batch=275"});
  for (const char* parts : {"5", "100"}) {
    CAPTURE(parts);
    const std::string accumulate = std::string("train.accumulate=") + parts;
    const std::vector<double> shared = taken({"train.batch=55", accumulate}),
                              local =
                                  taken({"train.batch=55", accumulate, "train.statistics=local"});
    CHECK(shared[0] == doctest::Approx(whole[0]).epsilon(1e-10));
    CHECK(local[0] != doctest::Approx(whole[0]).epsilon(1e-3));
  }
}

// Beyond its last own time step a recurrent norm moves no average in training, and none here.
TEST_CASE("population statistics: every time step has its own, and the last is that step's alone") {
  Loaded apart({"model.norm=recurrentbatchnorm{steps=1000}"}, "attentive_reader");
  Loaded few({"model.norm=recurrentbatchnorm{steps=3}"}, "attentive_reader");
  apart.pass();
  few.pass();
  int norms = 0;
  for (const auto& [name, variable] : few.variables.all()) {
    if (!name.ends_with("/t2/var")) continue;
    const std::string norm = name.substr(0, name.size() - 7);
    CAPTURE(norm);
    ++norms;
    for (const char* step : {"/t1/", "/t2/"}) {
      CHECK(few.read(norm + step + "var") == apart.read(norm + step + "var"));
      CHECK(few.read(norm + step + "mean") == apart.read(norm + step + "mean"));
    }
    CHECK(apart.read(norm + "/t1/var") != apart.read(norm + "/t2/var"));
  }
  CHECK(norms > 2);
}

TEST_CASE("population statistics: norms that train by running statistics are refused") {
  const auto refused = [](const std::string& norm, const std::string& part) {
    Loaded net({"model.norm=" + norm});
    test::check_refused([&] { net.pass(); }, "", part);
  };
  for (const char* norm : {"powernorm", "mabn", "unifiednorm", "batchrenorm"}) {
    CAPTURE(norm);
    refused(norm, "expected norms that train only on batch statistics, got fc1/norm");
  }
  refused("layernorm", "expected a norm over the batch, such as batchnorm; mnist_mlp has none");
  refused("batchnorm{keep=1}", "fc1/norm/running_mean: expected keep < 1");
}

// Each batch would have to go on from the one before.
TEST_CASE("population statistics: of a network that carries a state they are refused") {
  Loaded net({"model.norm=batchnorm"}, "char_lm");
  test::check_refused([&] { net.pass(); },
                      "population statistics: expected batches that do not go on from each other");
}

}  // namespace
}  // namespace keel::train
