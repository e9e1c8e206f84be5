// The plain recurrent network, and cells with a norm of their summed input as one, against their
// formulas written out number by number in double precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/frontend/nn/plain_cells.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

// A kind of cell: its layer in a network, and one time step of it written out.
struct Kind {
  const char* name;
  Layer (*layer)(const CellOptions& options, bool masked, std::int64_t width);
  void (*step)(const PlainLayer& p, const Values& x, const Known& known, StateOfRows& s);
};
const Kind kKinds[] = {{"rnn", rnn, step_rnn}, {"lstm", lstm, step_lstm}, {"gru", gru, step_gru}};

CellOptions of_sum(const std::string& norm) {
  return {.norms = cell_norms(Norm::parse(norm), NormOf::kSum), .forget_bias = 0.5};
}

// Compares h of every step and row with the cell written out, which keeps its state in padding.
void check_formula(const Kind& kind, const std::string& norm, bool masked) {
  LayerRun run(kind.layer(of_sum(norm), masked, kWidth), kInput);
  scatter(run);
  run.program->run();
  const Tensor h = run.program->fetch("y", true), x = test::random_normal(kInput, 5, 2, 3);
  const PlainLayer plain{run, norm};
  StateOfRows state;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    Known known;
    for (std::int64_t row = 0; row < kRows; ++row) known.push_back(!masked || has_step(row, t));
    StateOfRows next = state;
    kind.step(plain, values_of(x, t, kIn), known, next);
    const Values got = values_of(h, t, kWidth);
    for (std::size_t row = 0; row < kRows; ++row) {
      if (known[row]) state.h[row] = next.h[row], state.c[row] = next.c[row];
      for (std::size_t i = 0; i < kWidth; ++i) {
        CHECK(got[row][i] == doctest::Approx(state.h[row][i]).epsilon(1e-11));
      }
    }
  }
}

TEST_CASE("recurrent sum: cells are their formulas, for norms of rows, batches and weights") {
  for (const Kind& kind : kKinds) {
    for (const std::string norm :
         {"none", "layernorm", "rmsnorm", "adanorm", "batchnorm", "pn_v", "weightnorm"}) {
      for (const bool masked : {false, true}) {
        CAPTURE(std::string(kind.name));
        CAPTURE(norm);
        CAPTURE(masked);
        check_formula(kind, norm, masked);
      }
    }
  }
}

TEST_CASE("recurrent sum: gradients of the plain network, masked or not") {
  for (const std::string norm : {"none", "layernorm"}) {
    for (const bool masked : {false, true}) {
      CAPTURE(norm);
      CAPTURE(masked);
      LayerRun run(rnn(of_sum(norm), masked), kInput, Mode::kProbe);
      scatter(run);
      check_central_differences(run);
    }
  }
}

TEST_CASE("recurrent sum: gradients of all parameters, for many norms" *
          doctest::test_suite("slow")) {
  for (const Kind& kind : kKinds) {
    for (const std::string norm :
         {"layernorm", "rmsnorm", "weightnorm", "scalenorm", "groupnorm{groups=1}",
          "batchnorm{gain_init=0.1}", "pn_v", "recurrentbatchnorm"}) {
      for (const bool masked : {false, true}) {
        CAPTURE(std::string(kind.name));
        CAPTURE(norm);
        CAPTURE(masked);
        LayerRun run(kind.layer(of_sum(norm), masked, kWidth), kInput, Mode::kProbe);
        check_central_differences(run);
      }
    }
  }
}

TEST_CASE("recurrent sum: the plain network takes norms of its two products as well") {
  for (const std::string norm : {"layernorm", "batchnorm{gain_init=0.1}", "weightnorm"}) {
    CAPTURE(norm);
    LayerRun run(rnn(options(norm), true), kInput, Mode::kProbe);
    check_central_differences(run);
  }
}

// With a norm of the sum both weights may have any length, together and, of one feature, alone.
TEST_CASE("recurrent sum: layernorm makes states independent of the scale of the weights") {
  const auto states = [](double scale) {
    LayerRun run(rnn(of_sum("layernorm{eps=0}")), kInput);
    scatter(run);
    for (const char* name : {"layer/recurrent/weight", "layer/input/weight"}) {
      Tensor weight = run.read(name);
      for (double& v : weight.as<double>()) v *= scale;
      run.variables.write(name, weight);
    }
    run.program->run();
    return run.program->fetch("y", true).clone();
  };
  const Tensor expected = states(1);
  CHECK(largest(expected) > 0.1);
  for (const double scale : {0.25, 3.0, 1000.0}) {
    CAPTURE(scale);
    test::check_close(states(scale), expected, 1e-12);
  }
}

TEST_CASE("recurrent sum: parameters and states, and who has a bias") {
  const auto names = [](const LayerRun& run) {
    std::vector<std::string> sorted = run.parameters;
    std::ranges::sort(sorted);
    return sorted;
  };
  using Names = std::vector<std::string>;
  const Names weights{"layer/input/weight", "layer/recurrent/weight"};
  const auto with = [&](const Names& more) {
    Names all = weights;
    all.insert(all.end(), more.begin(), more.end());
    std::ranges::sort(all);
    return all;
  };
  const auto of = [&](const std::string& norm) {
    return names(LayerRun(rnn(of_sum(norm)), kInput));
  };
  CHECK(of("none") == with({"layer/input/bias"}));
  CHECK(of("layernorm") == with({"layer/norm/gain", "layer/norm/bias"}));
  CHECK(of("layernorm{bias=false}") == with({"layer/norm/gain", "layer/bias"}));
  CHECK(of("adanorm") == with({"layer/bias"}));
  CHECK(of("weightnorm") == with({"layer/norm/gain", "layer/bias"}));
  const CellNorms norms = lstm_norms(Norm::parse("batchnorm{bias_init=0.5}"), NormOf::kSum);
  LayerRun run(lstm({.norms = norms}), kInput);
  CHECK(names(run) ==
        with({"layer/bias", "layer/norm/gain", "layer/cell_norm/gain", "layer/cell_norm/bias"}));
  CHECK(std::ranges::count_if(run.states, [](const std::string& name) {
          return name.find("/t3/") != std::string::npos;
        }) == 6);  // mean, var and seen of the sum and of the cell
}

TEST_CASE("recurrent sum: what padding holds changes no bit") {
  for (const Kind& kind : kKinds) {
    for (const std::string norm : {"none", "layernorm", "batchnorm"}) {
      CAPTURE(std::string(kind.name));
      CAPTURE(norm);
      const Layer layer = kind.layer(of_sum(norm), true, kWidth);
      LayerRun one(layer, kInput), other(layer, kInput);
      Tensor x = test::random_normal(kInput, 5, 2, 3);
      for (std::int64_t e = 0; e < x.elements(); ++e) {
        const std::int64_t row = e / kIn % kRows, t = e / kIn / kRows;
        if (!has_step(row, t)) x.as<double>()[std::size_t(e)] = 1e3;
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

TEST_CASE("recurrent sum: the plain network may learn its first state, and be given one") {
  LayerRun run(
      rnn({.norms = cell_norms(Norm::parse("layernorm"), NormOf::kSum), .learns_start = true}),
      kInput);
  CHECK(std::ranges::count(run.parameters, "layer/start/h") == 1);
  scatter(run);
  check_central_differences(run);
}

// Steps before the first one are like the start: the deviation is that of only the inputs.
TEST_CASE("recurrent sum: weightnorm takes its gain from the first batch") {
  const auto deviations = [](Mode mode, LayerRun* first) {
    LayerRun run(rnn(of_sum("weightnorm{gain_init=0.5}")), {1, kRows, kIn}, mode);
    if (first) {
      for (const std::string& name : run.parameters) run.variables.write(name, first->read(name));
    }
    run.program->run();
    const Tensor h = run.program->fetch("y", true);
    std::vector<double> result;
    for (std::int64_t i = 0; i < kWidth; ++i) {
      double mean = 0, square = 0;
      for (std::int64_t row = 0; row < kRows; ++row) mean += std::atanh(h.at(row * kWidth + i));
      mean /= double(kRows);
      for (std::int64_t row = 0; row < kRows; ++row) {
        square += std::pow(std::atanh(h.at(row * kWidth + i)) - mean, 2) / double(kRows);
      }
      result.push_back(std::sqrt(square));
    }
    return result;
  };
  LayerRun first(rnn(of_sum("weightnorm{gain_init=0.5}")), {1, kRows, kIn},
                 Mode::kDataDependentInit);
  first.program->run();
  for (const double deviation : deviations(Mode::kTrain, &first)) {
    CHECK(deviation == doctest::Approx(0.5).epsilon(1e-9));
  }
  for (const double deviation : deviations(Mode::kTrain, nullptr)) {
    CHECK(std::abs(deviation - 0.5) > 1e-3);
  }
}

TEST_CASE("recurrent sum: a norm of the sum beside one of its terms is refused") {
  CellOptions mixed = of_sum("layernorm");
  mixed.norms.input = Norm::parse("layernorm");
  for (const Kind& kind : kKinds) {
    CAPTURE(std::string(kind.name));
    test::check_refused([&] { LayerRun(kind.layer(mixed, false, kWidth), kInput); }, "layer",
                        "expected a norm of the sum or norms of its terms, got both");
  }
}

}  // namespace
}  // namespace keel::nn
