// Recurrent layers over 500 time steps: what a norm keeps alive, and gradients through all of them.
#include <doctest/doctest.h>

#include <cmath>

#include "frontend/nn/recurrent.h"
#include "tests/frontend/nn/helpers.h"

namespace keel::nn {
namespace {

constexpr std::int64_t kManySteps = 500, kSequences = 2, kInputs = 2, kUnits = 4;

// Recurrent weights are 1.2 times an orthogonal matrix for each gate.
CellOptions growing_options(const std::string& norm) {
  CellOptions options{.norms = cell_norms(Norm::parse(norm))};
  options.recurrent_init = [](std::int64_t fan_in, std::int64_t fan_out) {
    return orthogonal(1.2, fan_out / fan_in);
  };
  return options;
}

template <class Cell>
Layer cell_layer(const std::string& norm) {
  return [norm](Net& net, Value x) {
    return Cell(net, "layer", kInputs, kUnits, growing_options(norm))(x).h;
  };
}

// The root of the mean square of h at a time step, when x is 0 but at the first one.
template <class Cell>
std::vector<double> sizes_behind_a_pulse(const std::string& norm) {
  LayerRun run(cell_layer<Cell>(norm), {kManySteps, kSequences, kInputs}, Mode::kProbe);
  Tensor x(DType::kF32, {kManySteps, kSequences, kInputs});
  for (std::size_t i = 0; i < kSequences * kInputs; ++i)
    x.as<float>()[i] = i % 2 == 0 ? 1.0F : -2.0F;
  run.program->feed("x", x);
  run.program->run();
  const Tensor h = run.program->fetch("y", true);
  std::vector<double> sizes;
  for (std::int64_t t = 0; t < kManySteps; ++t) {
    double squares = 0;
    for (std::int64_t i = 0; i < kSequences * kUnits; ++i) {
      squares += std::pow(h.at(t * kSequences * kUnits + i), 2);
    }
    sizes.push_back(std::sqrt(squares / double(kSequences * kUnits)));
  }
  return sizes;
}

template <class Cell>
void check_state_stays() {
  const std::vector<double> plain = sizes_behind_a_pulse<Cell>("none"),
                            normalized = sizes_behind_a_pulse<Cell>("layernorm");
  CHECK(plain[0] > 0.01);
  CHECK(plain.back() < 1e-9);
  for (std::size_t t = 0; t < normalized.size(); ++t) {
    CAPTURE(t);
    CHECK(normalized[t] > 0.03);
    CHECK(normalized[t] < 1);
  }
}

TEST_CASE("recurrent: layer normalization keeps a state alive for 500 steps, and no norm does not" *
          doctest::test_suite("slow")) {
  check_state_stays<Lstm>();
  check_state_stays<Gru>();
}

// A weight acts 500 times, and third derivatives are up to 2e8 of the first: a step of 1e-7 leaves
// 4e-7 of it, and rounding, 1e-14 of the loss, 1e-7 / 2.
TEST_CASE("recurrent: gradients of 500 steps are those of central differences" *
          doctest::test_suite("slow")) {
  for (const std::string norm : {"none", "layernorm"}) {
    CAPTURE(norm);
    LayerRun of_lstm(cell_layer<Lstm>(norm), {kManySteps, 1, kInputs}, Mode::kProbe);
    check_central_differences(of_lstm, 1e-7);
    LayerRun of_gru(cell_layer<Gru>(norm), {kManySteps, 1, kInputs}, Mode::kProbe);
    check_central_differences(of_gru, 1e-7);
  }
}

}  // namespace
}  // namespace keel::nn
