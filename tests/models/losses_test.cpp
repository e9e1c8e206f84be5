// The losses and bounds of the zoo, worked out by hand: from the numbers that the network gives to
// its loss, or from parameters for which the answer has a closed form.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "frontend/train/evaluator.h"
#include "models/handwriting/stroke_rows.h"
#include "src/ops/loss.h"
#include "tests/models/every_task.h"

namespace keel::models {
namespace {

// The logits that a task's cross entropy reads for a batch of the validation set, with rows of
// padding where the task has any, and the sums that it makes of them.
struct AtLoss {
  std::unique_ptr<task::Stream> stream;
  const task::Batch* batch = nullptr;
  Tensor logits;
  double loss = 0;
  std::map<std::string, double> metrics;

  explicit AtLoss(const train::Job& job)
      : stream(stream_of(job, task::Split::kValid, {.batch = 4096, .shuffle = {}})),
        batch(&stream->at(0, stream->steps(0) - 1)) {
    Graph g;
    const Value zero = g.constant(Tensor(DType::kI32, {}));
    nn::Net net{.graph = g, .step = zero, .first_row = zero};
    const task::Outputs out =
        job.network().build(net, train::add_inputs(g, job.network(), batch->sizes));
    for (int i = 0; i < g.size() && g.outputs().empty(); ++i) {
      if (g.node(i).op == &kCrossEntropy) g.mark_output("logits", g.node(i).inputs[0]);
    }
    g.mark_output("loss", out.loss_sum);
    for (const task::Metric& m : out.metrics) g.mark_output(m.name, m.sum);
    const auto backend = make_backend("reference");
    Variables variables(*backend, 3);
    Program program(*backend, variables, g);
    train::Feeder(job.network()).feed(program, *batch);
    program.run();
    logits = program.fetch("logits", true);
    loss = program.scalar("loss");
    for (const task::Metric& m : out.metrics) metrics[m.name] = program.scalar(m.name);
  }
};

// The values of some inputs of the batch, one after the other.
std::vector<std::int32_t> labels_of(const AtLoss& at, const train::Job& job,
                                    const std::vector<std::string>& names) {
  std::vector<std::int32_t> labels;
  const std::vector<task::Input> inputs = job.network().inputs(at.batch->sizes);
  for (const std::string& name : names) {
    const auto found = std::ranges::find(inputs, name, &task::Input::name);
    REQUIRE(found != inputs.end());
    const auto values = at.batch->values[std::size_t(found - inputs.begin())].as<std::int32_t>();
    labels.insert(labels.end(), values.begin(), values.end());
  }
  return labels;
}

// Sums over the rows of logits whose label is one of the classes, and not that of padding.
struct ByHand {
  double nats = 0;    // -log p of the label
  double spread = 0;  // the mean of -log p over all classes
  double wrong = 0, rows = 0;

  ByHand(const Tensor& logits, const std::vector<std::int32_t>& labels) {
    const std::int64_t classes = logits.shape().back();
    REQUIRE(logits.elements() == std::ssize(labels) * classes);
    for (std::size_t row = 0; row < labels.size(); ++row) {
      if (labels[row] < 0) continue;
      std::vector<double> x;
      for (std::int64_t k = 0; k < classes; ++k) {
        x.push_back(logits.at(std::int64_t(row) * classes + k));
      }
      add(x, std::size_t(labels[row]));
    }
  }

 private:
  void add(const std::vector<double>& x, std::size_t label) {
    const auto best = std::ranges::max_element(x);
    double total = 0, mean = 0;
    for (const double each : x) {
      total += std::exp(each - *best);
      mean += each / double(x.size());
    }
    const double log_sum = *best + std::log(total);
    nats += log_sum - x[label];
    spread += log_sum - mean;
    wrong += std::size_t(best - x.begin()) != label;
    ++rows;
  }
};

doctest::Approx exactly(double value) { return doctest::Approx(value).epsilon(1e-11); }

TEST_CASE("losses: a classification's is the sum of -log p of the labels, its errors are counted" *
          doctest::test_suite("slow")) {
  for (const auto& [task, label] : {std::pair{"mnist_mlp", "label"},
                                    {"mnist_cnn", "label"},
                                    {"cifar_resnet20", "label"},
                                    {"cifar_vgg", "label"},
                                    {"text_classifier", "label"},
                                    {"dependency_parser", "label"},
                                    {"attentive_reader", "answer"}}) {
    CAPTURE(task);
    const train::Job job = small_job({}, task);
    const AtLoss at(job);
    const ByHand expected(at.logits, labels_of(at, job, {label}));
    CHECK(expected.rows == at.batch->items);
    CHECK(expected.wrong > 0);
    CHECK(at.loss == exactly(expected.nats));
    REQUIRE(at.metrics.size() == 1);
    CHECK(at.metrics.begin()->second == expected.wrong);
  }
}

TEST_CASE("losses: skip-thoughts' is that of the words of both neighbours, in nats") {
  const train::Job job = small_job({}, "skip_thoughts");
  const AtLoss at(job);
  const ByHand expected(at.logits, labels_of(at, job, {"before_out", "after_out"}));
  CHECK(expected.rows == at.batch->items);
  CHECK(at.loss == exactly(expected.nats));
  CHECK(at.metrics.at("nll") == exactly(expected.nats));
}

TEST_CASE("losses: translation's is smoothed over all symbols, its perplexity is not" *
          doctest::test_suite("slow")) {
  const train::Job job = small_job({"model.label_smoothing=0.2"}, "translation");
  const AtLoss at(job);
  const ByHand expected(at.logits, labels_of(at, job, {"target_out"}));
  CHECK(expected.rows == at.batch->items);
  CHECK(at.loss == exactly(0.8 * expected.nats + 0.2 * expected.spread));
  CHECK(at.metrics.at("perplexity") == exactly(expected.nats));
}

// The summed loss of a batch.
double loss_of(const train::Job& job, const task::Batch& batch) {
  Graph g;
  nn::Net net{.graph = g};
  const task::Outputs out =
      job.network().build(net, train::add_inputs(g, job.network(), batch.sizes));
  g.mark_output("loss", out.loss_sum);
  const auto backend = make_backend("reference");
  Variables variables(*backend, 3);
  Program program(*backend, variables, g);
  train::Feeder(job.network()).feed(program, batch);
  program.run();
  return program.scalar("loss");
}

TEST_CASE("losses: rows of padding add nothing to the ranking of captions" *
          doctest::test_suite("slow")) {
  for (const char* error : {"model.error=order", "model.error=symmetric"}) {
    CAPTURE(error);
    const train::Job job = small_job({error}, "order_embeddings");
    const auto stream = stream_of(job, task::Split::kTest, {.batch = 25, .shuffle = {}});
    const task::Batch& last = stream->at(0, stream->steps(0) - 1);
    std::vector<std::int64_t> rows = last.rows;
    std::erase(rows, -1);
    CHECK(rows.size() == 10);
    CHECK(last.sizes[0] == 25);
    const double padded = loss_of(job, last);
    const task::Batch& bare = stream->pick(rows);
    CHECK(bare.sizes[0] == 10);
    CHECK(padded > 0);
    CHECK(padded == exactly(loss_of(job, bare)));
  }
}

// The evaluation of the test set with parameters that have a pattern repeated over all their
// elements.
train::Evaluation evaluated(const train::Job& job,
                            const std::map<std::string, std::vector<double>>& patterns) {
  const auto backend = make_backend("reference");
  Variables variables(*backend, 1);
  train::Evaluator evaluator(*backend, variables, job);
  evaluator.declare();
  for (const auto& [name, pattern] : patterns) {
    Tensor value(DType::kF32, variables.read(name).shape());
    const std::span<float> elements = value.as<float>();
    for (std::size_t i = 0; i < elements.size(); ++i) {
      elements[i] = float(pattern[i % pattern.size()]);
    }
    variables.write(name, value);
  }
  return evaluator.run(*stream_of(job, task::Split::kTest, {.batch = 16, .shuffle = {}}));
}

TEST_CASE("losses: a split's loss is that of an item, such as a word") {
  const train::Evaluation e = evaluated(small_job({}, "skip_thoughts"), {});
  CHECK(e.items > double(e.rows));
  CHECK(e.loss == exactly(e.at("nll")));
}

TEST_CASE("losses: DRAW's divergence is that of all glimpses of an image, in nats") {
  const std::vector<double> mu{0.5, -1, 2, 0}, s{0.25, -0.5, 0, 1};
  double kl = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    kl += (mu[i] * mu[i] + std::exp(2 * s[i]) - 2 * s[i] - 1) / 2;
  }
  // Nothing is drawn, so that every pixel is as likely as not.
  const double reconstruction = 784 * std::numbers::ln2;
  const train::Evaluation e =
      evaluated(small_job({"model.glimpses=3"}, "draw"), {{"mean/weight", {0}},
                                                          {"mean/bias", mu},
                                                          {"log_deviation/weight", {0}},
                                                          {"log_deviation/bias", s},
                                                          {"write/weight", {0}}});
  CHECK(e.at("kl") == exactly(3 * kl));
  CHECK(e.at("reconstruction") == exactly(reconstruction));
  CHECK(e.at("bound") == exactly(3 * kl + reconstruction));
  CHECK(e.loss == exactly(3 * kl + reconstruction));
}

// A normal distribution of the plane; log_sigma below -7 counts as that.
struct Bump {
  double share, mean1, mean2, log_sigma1, log_sigma2, rho;

  double density(double x, double y) const {
    const double sigma1 = std::exp(std::max(log_sigma1, -7.0)),
                 sigma2 = std::exp(std::max(log_sigma2, -7.0));
    const double a = (x - mean1) / sigma1, b = (y - mean2) / sigma2, rest = 1 - rho * rho;
    const double z = a * a + b * b - 2 * rho * a * b;
    return share * std::exp(-z / (2 * rest)) /
           (2 * std::numbers::pi * sigma1 * sigma2 * std::sqrt(rest));
  }
};

struct WrittenByHand {
  double nll = 0, points = 0, lines = 0;
};

// The sums over the test set if every point is as likely as two bumps and a pen that lifts say.
WrittenByHand written(const train::Job& job, const std::vector<Bump>& bumps, double lifts) {
  WrittenByHand sums;
  const auto stream = stream_of(job, task::Split::kTest, {.batch = 16, .shuffle = {}});
  for (std::int64_t step = 0; step < stream->steps(0); ++step) {
    const task::Batch& batch = stream->at(0, step);
    const auto targets = batch.values[StrokeValue::kTargets].as<float>();
    const auto mask = batch.values[StrokeValue::kMask].as<std::uint8_t>();
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      double density = 0;
      for (const Bump& b : bumps) density += b.density(targets[3 * i], targets[3 * i + 1]);
      sums.nll -= std::log(density) + std::log(targets[3 * i + 2] == 1 ? lifts : 1 - lifts);
      ++sums.points;
    }
    sums.lines += batch.items;
  }
  return sums;
}

TEST_CASE("losses: handwriting's is the mixtures' -log density, in nats a line and a point") {
  const train::Job job = small_job({"model.components=2"}, "handwriting");
  const std::vector<Bump> bumps{{0.75, 0.5, -0.25, 0.5, 0.25, std::tanh(0.5)},
                                {0.25, -1, 1, 0, -9, std::tanh(-0.25)}};
  std::vector<double> bias{-std::log(0.2 / 0.8), std::log(3.0), 0};
  bias.insert(bias.end(), {0.5, -1, -0.25, 1, 0.5, 0, 0.25, -9, 0.5, -0.25});
  const WrittenByHand expected = written(job, bumps, 0.2);
  const train::Evaluation e = evaluated(job, {{"density/weight", {0}}, {"density/bias", bias}});
  const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-6); };
  CHECK(e.items == expected.lines);
  CHECK(e.loss == near(expected.nll / expected.lines));
  CHECK(e.at("nll") == near(expected.nll / expected.lines));
  CHECK(e.at("nll_point") == near(expected.nll / expected.points));
  CHECK(e.at("held") == doctest::Approx(100.0 / 6));  // one number of three that each bump has
}

}  // namespace
}  // namespace keel::models
