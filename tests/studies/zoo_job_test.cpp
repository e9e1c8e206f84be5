// Tasks of the zoo as studies train them, and what is measured on the way.
#include "studies/zoo_job.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "frontend/train/step_runner.h"
#include "studies/batch_statistics.h"
#include "studies/gradient_probe.h"
#include "studies/lab.h"
#include "studies/memory_training.h"
#include "tests/support/checks.h"
#include "tests/support/small_run.h"

namespace keel::study {
namespace {

Options small_options(Backend& backend, const std::string& task = "mnist_mlp", int steps = 3) {
  Options options{backend, 5, 1, steps};
  options.task = task;
  options.data = test::small_digits().string();
  options.settings = {{"train.batch", "32"}, {"data.train_rows", "0"}};
  if (task == "mnist_mlp") options.settings.push_back({"model.hidden", "8"});
  return options;
}

train::Job small_job(const Options& options, const std::string& norm) {
  return zoo_job(options, 0, {options.task, norm, 7, {{"train.lr", "0.01"}}});
}

TEST_CASE("zoo training: every update is seen, with its batch before it, over epochs") {
  const auto backend = make_backend("reference");
  const train::Job job = small_job(small_options(*backend, "mnist_mlp", 20), "batchnorm");
  std::vector<double> losses[2];
  for (std::vector<double>& found : losses) {
    Training training(*backend, job);
    std::int64_t expected = -1;
    double epoch = 0;
    const auto expect = [&](const train::ObservedUpdate& update) {
      CHECK(update.rows.at(std::uint32_t(update.place.epoch), update.place.batch).sizes ==
            task::Sizes{32});
      expected = update.place.step;
    };
    const auto look = [&](const TrainedStep& s) {
      CHECK(s.step == expected);
      CHECK(s.epoch > epoch);
      CHECK(s.part == 1);
      CHECK(s.program->scalar("loss") == doctest::Approx(s.loss).epsilon(1e-12));
      epoch = s.epoch;
      found.push_back(s.loss);
    };
    training.run({.mark = [](Graph&) {}, .expect = expect, .look = look});
    CHECK(expected == 19);
    CHECK(epoch == doctest::Approx(2.5));  // 8 batches of 275 rows an epoch
    CHECK(training.evaluate(task::Split::kTest).rows == 60);
  }
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0].back() < losses[0].front());
}

TEST_CASE("zoo training: options decide, and what no study can do is refused") {
  const auto backend = make_backend("reference");
  Options options = small_options(*backend);
  options.settings.push_back({"train.lr", "0.5"});
  const train::Job job = zoo_job(options, 2, {"mnist_mlp", "none", 7});
  CHECK(job.train().lr == 0.5);
  CHECK(job.train().seed == 7);
  CHECK(job.train().max_steps == 3);
  CHECK(job.train().batch == 32);
  options.steps = 0;
  CHECK(zoo_job(options, 0, {"mnist_mlp", "none", 7}).train().max_steps == 7);
  CHECK(task_of(options, "mnist_cnn") == "mnist_mlp");
  CHECK(norms_of(options, {"none"}) == std::vector<std::string>{"none"});
  options.norms = {"adanorm"};
  CHECK(norms_of(options, {"none"}) == options.norms);
  options.settings.push_back({"train.accumulate", "2"});
  CHECK(zoo_job(options, 0, {"mnist_mlp", "none", 7}).train().accumulate == 2);
  test::check_refused(
      [&] {
        zoo_job_of_one_batch(options, 0, {"mnist_mlp", "none", 7});
      },
      "train.accumulate: expected 1, because this study takes an update as one batch, got 2");
}

// With dropout, and masks that every update draws again.
TEST_CASE("zoo training: a marked graph has the loss of the update itself, dropout and all") {
  const auto backend = make_backend("reference");
  Options options{*backend, 5, 1, 3};
  options.data = test::small_pairs().string();
  options.settings = {{"model.layers", "1"},    {"model.width", "8"},
                      {"model.heads", "2"},     {"model.feed_forward", "8"},
                      {"model.dropout", "0.3"}, {"train.batch", "128"}};
  const train::Job job = zoo_job(options, 0, {"translation", "batchnorm", 3});
  Training training(*backend, job);
  const auto look = [&](const TrainedStep& s) {
    CHECK(s.program->scalar("loss") == doctest::Approx(s.loss).epsilon(1e-12));
  };
  training.run({.mark = [](Graph&) {}, .look = look});
  CHECK(training.traces().at("loss").size() == 3);
}

// The losses of the first updates of `keel train`.
std::vector<double> losses_of_runner(Backend& backend, const train::Job& job) {
  const auto stream =
      job.splits().stream(task::Split::kTrain,
                          {.batch = job.train().batch, .shuffle = std::uint64_t(job.train().seed)});
  Variables variables(backend, std::uint64_t(job.train().seed));
  train::StepRunner steps(backend, variables, job, *stream);
  steps.initialize();
  std::vector<double> losses;
  train::StepPlace place;
  for (; place.step < job.train().max_steps; ++place.step) {
    steps.start(place);
    losses.push_back(steps.next(true)->loss);
    place.batch += steps.micro_batches(place);
    if (place.batch < stream->steps(std::uint32_t(place.epoch))) continue;
    ++place.epoch;
    place.batch = 0;
  }
  return losses;
}

// 275 rows make 34 batches of 8 in an epoch: 11 updates of three and one of a single batch.
TEST_CASE("zoo training: updates of several batches are those of keel train") {
  const auto backend = make_backend("reference");
  Options options = small_options(*backend, "mnist_mlp", 14);
  for (const auto& [key, value] :
       {std::pair{"train.batch", "8"}, {"train.accumulate", "3"}, {"train.statistics", "local"}}) {
    options.settings.push_back({key, value});
  }
  for (const char* norm : {"none", "batchnorm", "powernorm{warmup=5}"}) {
    CAPTURE(std::string(norm));
    const train::Job job = small_job(options, norm);
    Training training(*backend, job);
    std::vector<double> losses;
    const auto look = [&](const TrainedStep& s) {
      CHECK(s.epoch == doctest::Approx(double(s.step + 1) / 12));
      CHECK(s.part == doctest::Approx(s.step == 11 ? 1 : 1 / 3.0));
      losses.push_back(s.loss);
    };
    training.run({.look = look});
    CHECK(losses == losses_of_runner(*backend, job));
  }
}

TEST_CASE("gradient probe: the slope at the weights of a training is its step's, and falls") {
  const auto backend = make_backend("reference");
  for (const char* norm : {"none", "batchnorm", "layernorm"}) {
    CAPTURE(std::string(norm));
    const train::Job job = small_job(small_options(*backend), norm);
    Training training(*backend, job);
    GradientProbe probe(*backend, job);
    double loss = 0;
    const auto expect = [&](const train::ObservedUpdate& update) {
      probe.take(update);
      const Weights theta = probe.read(training.variables());
      const Slope here = probe.at(theta);
      loss = here.loss;
      Weights next = theta;
      constexpr double kEta = 1e-6;
      for (std::size_t i = 0; i < next.size(); ++i) next[i] -= kEta * here.gradient[i];
      const double fall = here.loss - probe.at(next).loss,
                   square = mean_product(here.gradient, here.gradient) * double(theta.size());
      CHECK(fall == doctest::Approx(kEta * square).epsilon(1e-3));
    };
    const auto look = [&](const TrainedStep& s) {
      CHECK(s.loss == doctest::Approx(loss).epsilon(1e-12));
    };
    training.run({.expect = expect, .look = look});
    REQUIRE(probe.layers().size() == 3);
    CHECK(probe.layers()[1].name == "fc2");
    CHECK(probe.layers()[0].end == probe.layers()[1].begin);
  }
}

// These norms divide by running statistics, which updates move.
TEST_CASE("gradient probe: the loss at the weights of a training is its step's with any states") {
  const auto backend = make_backend("reference");
  for (const char* norm : {"powernorm{warmup=2}", "mabn", "batchrenorm"}) {
    CAPTURE(std::string(norm));
    const train::Job job = small_job(small_options(*backend), norm);
    Training training(*backend, job);
    GradientProbe probe(*backend, job);
    double loss = 0;
    const auto expect = [&](const train::ObservedUpdate& update) {
      probe.take(update);
      loss = probe.at(probe.read(training.variables())).loss;
    };
    const auto look = [&](const TrainedStep& s) {
      CHECK(s.loss == doctest::Approx(loss).epsilon(1e-12));
    };
    training.run({.expect = expect, .look = look});
  }
}

// L = theta' A theta / 2 with A = diag(a): g = A theta, the gradient along it changes by eta A g.
TEST_CASE("landscape: of a quadratic it is what algebra says") {
  const Weights a{1, 4, 0.5}, theta{1, -2, 3};
  const auto slope_at = [&](const Weights& w) {
    Slope slope{0, {}};
    for (std::size_t i = 0; i < w.size(); ++i) {
      slope.loss += a[i] * w[i] * w[i] / 2;
      slope.gradient.push_back(a[i] * w[i]);
    }
    return slope;
  };
  const Landscape found = landscape_along(slope_at, theta, 0.1);
  const Slope here = slope_at(theta);
  const double size = length(here.gradient), changed = length(slope_at(here.gradient).gradient);
  const double curvature = 2 * slope_at(here.gradient).loss;  // g' A g
  const auto loss = [&](double eta) {
    return here.loss - eta * size * size + eta * eta * curvature / 2;
  };
  CHECK(found.beta == doctest::Approx(changed / size));
  CHECK(found.gradient_min == doctest::Approx(0.05 * changed));
  CHECK(found.gradient_max == doctest::Approx(0.4 * changed));
  CHECK(found.loss_max == doctest::Approx(loss(0.05)));
  CHECK(found.lipschitz == doctest::Approx((here.loss - loss(0.05)) / (0.05 * size)));
  // The least is near eta = |g|^2 / g'Ag, among the ten that are tried.
  double least = INFINITY;
  for (int k = 0; k < 10; ++k) least = std::min(least, loss(0.05 * std::exp2(k / 3.0)));
  CHECK(found.loss_min == doctest::Approx(least));
}

Tensor matrix(std::int64_t rows, std::vector<double> values) {
  return Tensor::of<double>({rows, std::ssize(values) / rows}, values);
}

// x = 1, 3: mean 2, variance 1, xhat = -1, 1; of psi^2 = 5, xhat = x / sqrt 5.
TEST_CASE("batch statistics: two rows of one feature, by hand") {
  const NormValues values{matrix(2, {1, 3}), matrix(2, {0.5, 1.5})};
  const NormBefore before{matrix(1, {0.5}), matrix(1, {4}), matrix(1, {2})};
  const BatchStatistics batch =
      batch_statistics(values, before, {.op = nullptr, .is_centred = true, .eps = 0});
  CHECK(batch.distance_mean == doctest::Approx(1.5));
  CHECK(batch.distance_square == doctest::Approx(3));
  CHECK(batch.tid_mean == doctest::Approx(0.75));
  CHECK(batch.tid_deviation == doctest::Approx(0.5));
  CHECK(batch.gradient_mean == doctest::Approx(2));          // 2 * mean(dy) = 2 * 1
  CHECK(batch.gradient_square == doctest::Approx(2 * 0.5));  // mean(dy xhat) = 0.5
  const BatchStatistics quadratic =
      batch_statistics(values, before, {.op = nullptr, .is_centred = false, .eps = 0});
  CHECK(quadratic.distance_square == doctest::Approx(1));
  CHECK(quadratic.distance_mean == 0);
  CHECK(quadratic.tid_mean == 0);
  CHECK(quadratic.tid_deviation == doctest::Approx((std::sqrt(5) - 2) / 2));
  CHECK(quadratic.gradient_mean == 0);
  // (2 / sqrt 5) mean(dy xhat) xhat with mean(dy xhat) = 2.5 / sqrt 5, rows 1 / sqrt 5, 3 / sqrt 5.
  CHECK(quadratic.gradient_square == doctest::Approx(2 / 5.0 * 2.5 * 2 / std::sqrt(5)));
}

TEST_CASE("batch statistics: a training's values are those of the norm, padding left out" *
          doctest::test_suite("slow")) {
  const auto backend = make_backend("reference");
  for (const auto& [task, norm] : {std::pair{"mnist_mlp", "batchnorm"},
                                   {"mnist_cnn", "batchnorm"},
                                   {"text_classifier", "batchnorm"},
                                   {"text_classifier", "powernorm{warmup=9}"},
                                   {"mnist_mlp", "unifiednorm"},
                                   {"mnist_mlp", "pn_v"}}) {
    CAPTURE(std::string(task));
    Options options = small_options(*backend, task, 2);
    if (task == std::string("text_classifier")) {
      options.data.clear();
      options.settings = {{"train.batch", "256"},
                          {"data.train_rows", "100"},
                          {"model.layers", "1"},
                          {"model.width", "8"},
                          {"model.heads", "2"},
                          {"model.feed_forward", "8"},
                          {"model.scaling", "layerscaling"}};
    }
    if (task == std::string("mnist_cnn")) options.settings.push_back({"model.architecture", "C"});
    const train::Job job = small_job(options, norm);
    const WatchedNorm watched = watched_norm(norm);
    Training training(*backend, job);
    ObservedNorm site;
    int looked = 0;
    const auto mark_first = [&](Graph& g) {
      site = observed_norms(g, *watched.op)[0];
      mark_values(g, site, watched);
      mark(g, site, "mean", {site.forward, 1});
    };
    const auto look = [&](const TrainedStep& s) {
      const NormValues values = values_at(*s.program, site);
      const Tensor found = fetch(*s.program, site, "mean");
      CHECK(values.x.shape() == values.dy.shape());
      for (std::int64_t c = 0; c < found.elements(); ++c) {
        const std::vector<double> x = column(values.x, c);
        const double expected =
            watched.is_centred ? mean(x) : 1 / std::sqrt(mean_product(x, x) + watched.eps);
        CHECK(found.at(c) == doctest::Approx(expected).epsilon(1e-10));
      }
      ++looked;
    };
    training.run({.mark = mark_first, .look = look});
    CHECK(looked == 2);
  }
  test::check_refused([] { watched_norm("layernorm"); },
                      "[statistics] --norm: expected batchnorm, pn_v, powernorm or unifiednorm, "
                      "got layernorm");
}

}  // namespace
}  // namespace keel::study
