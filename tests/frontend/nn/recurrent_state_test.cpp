// The states of cells before the first step and after the last one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/backends.h"
#include "src/ops/layout.h"
#include "tests/frontend/nn/recurrent_layers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

// The first state as an input, which the caller feeds.
Layer lstm_from(const CellOptions& options) {
  return [=](Net& net, Value x) {
    const Lstm layer(net, "layer", kIn, kWidth, options);
    const Value first = net.graph.input("first", {DType::kF32, {kRows, kWidth}});
    LstmState state{first, first};
    std::vector<Value> h;
    for (const Value projected : layer.project(x)) {
      state = layer.step(projected, state, {std::int64_t(h.size()), {}});
      h.push_back(state.h);
    }
    return stack(net, h);
  };
}

Layer gru_from(const CellOptions& options) {
  return [=](Net& net, Value x) {
    const Gru layer(net, "layer", kIn, kWidth, options);
    return layer(x, {}, net.graph.input("first", {DType::kF32, {kRows, kWidth}})).h;
  };
}

void check_zeros_are_the_start(const Layer& given, const Layer& skipped) {
  LayerRun run(given, kInput), expected(skipped, kInput);
  run.program->feed("first", Tensor(DType::kF32, {kRows, kWidth}));
  run.program->run();
  expected.program->run();
  test::check_close(run.program->fetch("y", true), expected.program->fetch("y", true), 0);
  REQUIRE(run.parameters == expected.parameters);
  for (const std::string& name : run.parameters) {
    CAPTURE(name);
    const Tensor d = run.program->fetch("d " + name, true);
    CHECK(std::isfinite(largest(d)));
    test::check_close(d, expected.program->fetch("d " + name, true), 0);
  }
}

TEST_CASE("recurrent state: zeros given as the first state are what is there without one") {
  for (const std::string norm : {"none", "layernorm", "batchnorm"}) {
    CAPTURE(norm);
    check_zeros_are_the_start(lstm_from(options(norm)), lstm(options(norm)));
    check_zeros_are_the_start(gru_from(options(norm)), gru(options(norm)));
  }
}

// Rows of these lengths in `steps` time steps, each after as many steps of padding as `skipped`
// says.
struct PaddedRows {
  std::int64_t steps;
  Tensor x, mask;

  template <class Skipped>
  PaddedRows(std::span<const int> lengths, std::int64_t count, const Skipped& skipped)
      : steps(count),
        x(DType::kF32, {count, std::ssize(lengths), kIn}),
        mask(DType::kU8, {count, std::ssize(lengths)}) {
    const Tensor own = test::random_normal(kInput, 5, 2, 3);
    const std::span<float> values = x.as<float>();
    std::ranges::fill(values, 7.0F);
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t t = 0; t < lengths[std::size_t(row)]; ++t) {
        const std::int64_t at = (t + skipped(lengths[std::size_t(row)])) * kRows + row;
        mask.as<std::uint8_t>()[std::size_t(at)] = 1;
        for (std::int64_t i = 0; i < kIn; ++i) {
          values[std::size_t(at * kIn + i)] = float(own.at((t * kRows + row) * kIn + i));
        }
      }
    }
  }
};

PaddedRows padded_behind(std::span<const int> lengths, std::int64_t steps = kSteps) {
  return {lengths, steps, [](int) { return 0; }};
}
PaddedRows padded_before(std::span<const int> lengths) {
  return {lengths, kSteps, [](int length) { return int(kSteps) - length; }};
}

// The state after every row's last step, of an LSTM h and c, on the backend under test.
Tensor last_state(bool is_lstm, const std::string& norm, const PaddedRows& rows) {
  Graph g;
  Net net{.graph = g, .mode = Mode::kProbe};
  const Value x = g.input("x", rows.x.type()), mask = g.input("mask", rows.mask.type());
  if (is_lstm) {
    const LstmState last = Lstm(net, "layer", kIn, kWidth, options(norm))(x, mask).last;
    g.mark_output("last", ops::concat(g, {last.h, last.c}, 1));
  } else {
    g.mark_output("last", Gru(net, "layer", kIn, kWidth, options(norm))(x, mask).last);
  }
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 7);
  Program program(*backend, variables, g);
  program.feed("x", rows.x);
  program.feed("mask", rows.mask);
  program.run();
  return program.fetch("last");
}

TEST_CASE("recurrent state: where padding stands, and how much, changes no bit of the last state") {
  for (const bool is_lstm : {true, false}) {
    for (const std::string norm : {"none", "layernorm"}) {
      CAPTURE(is_lstm);
      CAPTURE(norm);
      const Tensor expected = last_state(is_lstm, norm, padded_behind(kLengths));
      CHECK(largest(expected) > 0.1);
      test::check_close(last_state(is_lstm, norm, padded_before(kLengths)), expected, 0);
      test::check_close(last_state(is_lstm, norm, padded_behind(kLengths, 2 * kSteps)), expected,
                        0);
    }
  }
}

TEST_CASE("recurrent state: padding changes rounding alone of a state with norms over the batch") {
  // Where rows of one length begin later, a time step's statistics are of the same rows. A sum of
  // six numbers in another order is off by 5 roundings of 2^-24, in each of four steps.
  constexpr double kRounding = 4 * 5 * 0x1p-24;
  constexpr std::array<int, kRows> kShort{2, 2, 2, 2, 2, 2};
  for (const bool is_lstm : {true, false}) {
    CAPTURE(is_lstm);
    const auto state = [&](const PaddedRows& rows) {
      return last_state(is_lstm, "batchnorm{gain_init=0.1}", rows);
    };
    test::check_close(state(padded_before(kShort)), state(padded_behind(kShort)), kRounding);
    test::check_close(state(padded_behind(kLengths, 2 * kSteps)), state(padded_behind(kLengths)),
                      kRounding);
  }
}

}  // namespace
}  // namespace keel::nn
