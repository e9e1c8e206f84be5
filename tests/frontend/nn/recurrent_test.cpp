// LSTM and GRU against their formulas written out number by number, with norms, masks and learned
// first states, and their gradients against central differences.
#include "frontend/nn/recurrent.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "src/ops/layout.h"
#include "tests/frontend/nn/recurrent_layers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

using Row = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Row row_of(const Tensor& value, std::int64_t row, std::int64_t width) {
  Row result;
  for (std::int64_t i = 0; i < width; ++i) result.push_back(value.at(row * width + i));
  return result;
}

// x W for W (in, out).
Row product(const Row& x, const Tensor& weight) {
  const std::int64_t out = weight.shape()[1];
  Row y(std::size_t(out), 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::int64_t j = 0; j < out; ++j) {
      y[std::size_t(j)] += x[i] * weight.at(std::int64_t(i) * out + j);
    }
  }
  return y;
}

// gain (x - mean) / sqrt(var + eps) + bias, the default layernorm.
Row layer_norm(const Row& x, const Tensor& gain, const Tensor& bias) {
  double mean = 0, var = 0;
  for (double v : x) mean += v / double(x.size());
  for (double v : x) var += (v - mean) * (v - mean) / double(x.size());
  Row y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto place = std::int64_t(i);
    y.push_back(gain.at(place) * (x[i] - mean) / std::sqrt(var + 1e-5) + bias.at(place));
  }
  return y;
}

// The layer's parameters as a run has them; a norm that is absent changes nothing.
struct Parameters {
  const LayerRun& run;
  bool normalized;

  Tensor at(const std::string& name) const { return run.read("layer/" + name); }
  Row norm(const std::string& name, const Row& x) const {
    if (!normalized) return x;
    return layer_norm(x, at(name + "/gain"), at(name + "/bias"));
  }
  Row projected(const std::string& name, const Row& x) const {
    return norm(name + "/norm", product(x, at(name + "/weight")));
  }
};

struct PlainLstm {
  Row h = Row(kWidth, 0), c = Row(kWidth, 0);

  void step(const Parameters& p, const Row& x) {
    const Row u = p.projected("recurrent", h), w = p.projected("input", x);
    const Tensor b = p.at("bias");
    const auto gate = [&](std::size_t place, std::size_t i) {
      const std::size_t at = place * kWidth + i;
      return u[at] + w[at] + b.at(std::int64_t(at));
    };
    for (std::size_t i = 0; i < kWidth; ++i) {
      c[i] = sigmoid(gate(0, i)) * c[i] + sigmoid(gate(1, i)) * std::tanh(gate(3, i));
    }
    const Row n = p.norm("cell_norm", c);
    for (std::size_t i = 0; i < kWidth; ++i) h[i] = sigmoid(gate(2, i)) * std::tanh(n[i]);
  }
};

struct PlainGru {
  Row h = Row(kWidth, 0);

  void step(const Parameters& p, const Row& x) {
    const Row u = p.projected("gates/recurrent", h), q = p.projected("candidate/recurrent", h);
    Row w = p.projected("gates/input", x), a = p.projected("candidate/input", x);
    if (!p.normalized) {
      const Tensor gates = p.at("gates/input/bias"), candidate = p.at("candidate/input/bias");
      for (std::size_t i = 0; i < 2 * kWidth; ++i) w[i] += gates.at(std::int64_t(i));
      for (std::size_t i = 0; i < kWidth; ++i) a[i] += candidate.at(std::int64_t(i));
    }
    for (std::size_t i = 0; i < kWidth; ++i) {
      const double z = sigmoid(u[i] + w[i]), r = sigmoid(u[kWidth + i] + w[kWidth + i]);
      h[i] = (1 - z) * h[i] + z * std::tanh(a[i] + r * q[i]);
    }
  }
};

// Holds h of every step and row to a cell written out, which keeps its state where the mask is 0.
template <class Cell>
void check_against(LayerRun& run, bool normalized, bool masked) {
  scatter(run);
  run.program->run();
  const Tensor h = run.program->fetch("y", true), x = test::random_normal(kInput, 5, 2, 3);
  const Parameters parameters{run, normalized};
  for (std::int64_t row = 0; row < kRows; ++row) {
    Cell cell;
    for (std::int64_t t = 0; t < kSteps; ++t) {
      CAPTURE(row);
      CAPTURE(t);
      if (!masked || has_step(row, t)) cell.step(parameters, row_of(x, t * kRows + row, kIn));
      const Row got = row_of(h, t * kRows + row, kWidth);
      for (std::size_t i = 0; i < kWidth; ++i) {
        CHECK(got[i] == doctest::Approx(cell.h[i]).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("recurrent: an LSTM is its formula, with norms and without, masked or not") {
  for (const bool masked : {false, true}) {
    for (const std::string norm : {"none", "layernorm"}) {
      CAPTURE(norm);
      CAPTURE(masked);
      LayerRun run(lstm(options(norm), masked), kInput);
      check_against<PlainLstm>(run, norm != "none", masked);
    }
  }
}

TEST_CASE("recurrent: a GRU is its formula, with norms and without, masked or not") {
  for (const bool masked : {false, true}) {
    for (const std::string norm : {"none", "layernorm"}) {
      CAPTURE(norm);
      CAPTURE(masked);
      LayerRun run(gru(options(norm), masked), kInput);
      check_against<PlainGru>(run, norm != "none", masked);
    }
  }
}

TEST_CASE(
    "recurrent: gradients of all parameters, with norms of rows, of weights and over batches" *
    doctest::test_suite("slow")) {
  for (const std::string norm : {"none", "layernorm", "rmsnorm", "weightnorm",
                                 "batchnorm{gain_init=0.1}", "sequencebatchnorm"}) {
    for (const bool masked : {false, true}) {
      CAPTURE(norm);
      CAPTURE(masked);
      LayerRun of_lstm(lstm(options(norm), masked), kInput, Mode::kProbe);
      check_central_differences(of_lstm);
      LayerRun of_gru(gru(options(norm), masked), kInput, Mode::kProbe);
      check_central_differences(of_gru);
    }
  }
}

TEST_CASE("recurrent: norms at one site alone") {
  for (const auto site : {&CellNorms::input, &CellNorms::recurrent, &CellNorms::cell}) {
    CellOptions one;
    one.norms.*site = Norm::parse("layernorm");
    LayerRun run(lstm(one), kInput);
    CHECK(run.parameters.size() == 5);
    check_central_differences(run);
  }
}

TEST_CASE("recurrent: a first state may be learned") {
  LayerRun run(lstm({.learns_start = true}), kInput);
  const auto has = [&](const char* name) {
    return std::ranges::find(run.parameters, name) != run.parameters.end();
  };
  CHECK(has("layer/start/h"));
  CHECK(has("layer/start/c"));
  scatter(run);
  check_central_differences(run);
  LayerRun of_gru(gru({.learns_start = true}), kInput);
  scatter(of_gru);
  check_central_differences(of_gru);
}

TEST_CASE("recurrent: in training an LSTM's first h may have noise of that deviation") {
  Graph g;
  Net net{.graph = g,
          .seed = 3,
          .step = g.input("step", {DType::kI32, {}}),
          .first_row = g.input("first_row", {DType::kI32, {}})};
  const Lstm lstm(net, "lstm", 3, 16, {.start_noise = 0.1});
  const LstmState start = lstm.start(500);
  g.mark_output("h", start.h);
  g.mark_output("c", start.c);
  reference::ReferenceBackend backend;
  Variables variables(backend, 1);
  Program program(backend, variables, g);
  program.feed("step", Tensor::scalar(std::int32_t{0}));
  program.feed("first_row", Tensor::scalar(std::int32_t{0}));
  program.run();
  const Tensor h = program.fetch("h", true).to(DType::kF64);
  double sum = 0, squares = 0;
  for (const double v : h.as<double>()) sum += v, squares += v * v;
  // 8,000 numbers: five standard errors of the mean and of the variance.
  CHECK(std::abs(sum / 8000) < 5 * 0.1 / std::sqrt(8000));
  CHECK(std::abs(squares / 8000 - 0.01) < 5 * 0.01 * std::sqrt(2.0 / 8000));
  const Tensor c = program.fetch("c", true).to(DType::kF64);
  for (const double v : c.as<double>()) CHECK(v == 0);
}

TEST_CASE("recurrent: an LSTM's norm over the batch has a bias at the cell alone") {
  const auto biases = [](const std::string& norm) {
    LayerRun run(lstm({.norms = lstm_norms(Norm::parse(norm))}), kInput);
    std::vector<std::string> found;
    std::ranges::copy_if(run.parameters, std::back_inserter(found),
                         [](const std::string& name) { return name.ends_with("bias"); });
    std::ranges::sort(found);
    return found;
  };
  const std::vector<std::string> of_batch{"layer/bias", "layer/cell_norm/bias"};
  CHECK(biases("batchnorm{gain_init=0.1,keep=0.99}") == of_batch);
  CHECK(biases("powernorm") == of_batch);
  CHECK(biases("sequencebatchnorm") == of_batch);
  CHECK(biases("layernorm").size() == 4);
  const CellNorms norms = lstm_norms(Norm::parse("batchnorm{gain_init=0.1,keep=0.99}"));
  CHECK(norms.input->option("gain_init") == "0.1");
  CHECK(norms.recurrent->option("keep") == "0.99");
}

TEST_CASE("recurrent: a norm over the batch keeps statistics for every step but for sequences") {
  LayerRun by_step(lstm(options("batchnorm")), kInput);
  const auto states = [](const LayerRun& run, const std::string& part) {
    return std::ranges::count_if(
        run.states, [&](const std::string& name) { return name.find(part) != std::string::npos; });
  };
  CHECK(states(by_step, "/t3/") == 9);  // mean, var and seen at three sites
  LayerRun whole(lstm(options("sequencebatchnorm")), kInput);
  CHECK(states(whole, "input/norm/t3") == 0);
}

TEST_CASE("recurrent: what padding holds changes no bit") {
  for (const std::string norm : {"none", "layernorm", "batchnorm"}) {
    for (const Layer& layer : {lstm(options(norm), true), gru(options(norm), true)}) {
      CAPTURE(norm);
      LayerRun one(layer, kInput), other(layer, kInput);
      Tensor x = test::random_normal(kInput, 5, 2, 3);
      for (std::int64_t t = 0; t < kSteps; ++t) {
        for (std::int64_t row = 0; row < kRows; ++row) {
          for (std::int64_t i = 0; i < kIn && !has_step(row, t); ++i) {
            x.as<double>()[std::size_t((t * kRows + row) * kIn + i)] = 1e3;
          }
        }
      }
      other.program->feed("x", x);
      one.program->run();
      other.program->run();
      test::check_close(one.program->fetch("y", true), other.program->fetch("y", true), 0);
      for (const std::string& name : one.parameters) {
        CAPTURE(name);
        test::check_close(one.program->fetch("d " + name, true),
                          other.program->fetch("d " + name, true), 0);
      }
    }
  }
}

TEST_CASE("recurrent: first values") {
  LayerRun run(lstm(options("none")), kInput);
  const Tensor bias = run.read("layer/bias");
  for (std::int64_t i = 0; i < 4 * kWidth; ++i) CHECK(bias.at(i) == (i < kWidth ? 0.5 : 0));
  const Tensor u = run.read("layer/recurrent/weight");
  for (std::int64_t gate = 0; gate < 4; ++gate) {  // each orthogonal
    double square = 0;
    for (std::int64_t i = 0; i < kWidth; ++i) {
      square += std::pow(u.at(i * 4 * kWidth + gate * kWidth), 2);
    }
    CHECK(square == doctest::Approx(1).epsilon(1e-6));
  }
}

}  // namespace
}  // namespace keel::nn
