// Recurrent cells on the backend under test, against the reference.
#include "src/ops/recurrent.h"

#include <algorithm>
#include <cmath>

#include "frontend/compare/cases/case_builder.h"
#include "frontend/compare/verdicts/comparison.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

// Numbers of these shapes, rounded to float32, and a mask that every third row is not in.
OpCase case_of(const std::vector<Shape>& shapes, std::int64_t rows, compare::Build build) {
  OpCase c;
  for (const Shape& shape : shapes) {
    c.inputs.push_back(random_f32(shape, 1 + std::uint32_t(c.inputs.size())));
  }
  Tensor mask(DType::kU8, {rows});
  for (std::int64_t row = 0; row < rows; ++row)
    mask.as<std::uint8_t>()[std::size_t(row)] = row % 3 != 1;
  c.inputs.push_back(std::move(mask));
  c.build = std::move(build);
  return c;
}

OpCase lstm_case(std::int64_t rows, std::int64_t width, bool masked) {
  const Shape gates{rows, 4 * width}, state{rows, width};
  return case_of({gates, gates, state, state}, rows,
                 [masked](Graph& g, const std::vector<Value>& v) {
                   const Value mask = masked ? v[4] : Value{};
                   const ops::LstmCell cell = ops::lstm_cell(g, v[0], v[1], v[2], mask);
                   const Value before = masked ? v[3] : Value{};
                   return std::vector{cell.c, ops::lstm_output(g, cell.o, cell.c, before, mask)};
                 });
}

OpCase gru_case(std::int64_t rows, std::int64_t width, bool masked) {
  const Shape gates{rows, 2 * width}, state{rows, width};
  return case_of({gates, gates, state, state, state}, rows,
                 [masked](Graph& g, const std::vector<Value>& v) {
                   const Value mask = masked ? v[5] : Value{};
                   return std::vector{ops::gru_cell(g, {v[0], v[1], v[2], v[3], v[4], mask})};
                 });
}

double largest(const Tensor& x) {
  double result = 0;
  for (std::int64_t e = 0; e < x.elements(); ++e) result = std::max(result, std::abs(x.at(e)));
  return result;
}

// The state after a last step, or its output gate, may be read by nobody. What the memory held does
// not show (run_node fills it).
TEST_CASE("backend recurrent: where one output alone has a gradient the other one's is 0") {
  for (const bool reads_state : {false, true}) {
    CAPTURE(reads_state);
    check_sampled([&](CaseBuilder& d) {
      const Value u = d.normal({6, 4 * 17}), w = d.normal({6, 4 * 17}), before = d.normal({6, 17});
      const ops::LstmCell all = ops::lstm_cell(d.graph, u, w, before),
                          some = ops::lstm_cell(d.graph, u, w, before, d.mask({6}));
      reads_state ? d.differentiate({all.c, some.c}) : d.differentiate({all.o, some.o});
    });
  }
}

TEST_CASE(
    "backend recurrent: a row outside of the mask keeps its state and its gradient, to the bit") {
  for_each_target([] {
    for (const bool gru : {false, true}) {
      OpCase c = gru ? gru_case(7, 33, true) : lstm_case(7, 33, true);
      const std::size_t state = gru ? 4 : 3;  // h'
      const std::string h = gru ? "y0" : "y1", dh = fmt::format("d{}", state);
      for (double& x : c.inputs[0].as<double>()) x *= 1e6;
      const Results got = run_tested(c), expected = run_reference(c);
      const Range row{33, 33};
      check_row(got.at(h), c.inputs[state], row, [](auto) { return 0.0; });
      check_row(got.at(dh), expected.at(dh), row, [](auto) { return 0.0; });
      CHECK(largest(expected.at(dh)) > 0);
      for (std::int64_t e = 33; e < 66; ++e) CHECK(got.at("d0").at(e) == 0);
    }
  });
}

TEST_CASE("backend recurrent: saturated gates and infinite arguments") {
  for_each_target([] {
    OpCase c = lstm_case(3, 17, false);
    const std::span<double> u = c.inputs[0].as<double>();
    for (std::size_t i = 0; i < u.size(); i += 4) u[i] = 200, u[i + 1] = -200, u[i + 2] = INFINITY;
    check_agrees(c);
  });
}

}  // namespace
}  // namespace keel::test
