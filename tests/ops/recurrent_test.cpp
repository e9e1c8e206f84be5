// The element-wise part of recurrent cells: values written out, gradients, masks, refusals.
#include "src/ops/recurrent.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Tensor kMask = Tensor::of<std::uint8_t>({3}, {1, 0, 1});

// Normal numbers of these shapes, and the mask where `masked`.
OpCase case_of(std::initializer_list<Shape> shapes, bool masked, compare::Build build) {
  OpCase c;
  for (const Shape& shape : shapes) {
    c.inputs.push_back(random_normal(shape, 1 + std::uint32_t(c.inputs.size())));
  }
  if (masked) c.inputs.push_back(kMask.clone());
  c.build = std::move(build);
  return c;
}

OpCase lstm_case(bool masked) {
  return case_of({{3, 8}, {3, 8}, {3, 2}, {3, 2}}, masked,
                 [masked](Graph& g, const std::vector<Value>& v) {
                   const Value mask = masked ? v[4] : Value{};
                   const ops::LstmCell cell = ops::lstm_cell(g, v[0], v[1], v[2], mask);
                   const Value before = masked ? v[3] : Value{};
                   return std::vector{cell.c, ops::lstm_output(g, cell.o, cell.c, before, mask)};
                 });
}

OpCase gru_case(bool masked) {
  return case_of({{3, 4}, {3, 4}, {3, 2}, {3, 2}, {3, 2}}, masked,
                 [masked](Graph& g, const std::vector<Value>& v) {
                   const Value mask = masked ? v[5] : Value{};
                   return std::vector{ops::gru_cell(g, {v[0], v[1], v[2], v[3], v[4], mask})};
                 });
}

bool steps(bool masked, std::int64_t row) { return !masked || kMask.at(row) != 0; }

TEST_CASE("recurrent ops: an LSTM's c and h") {
  for (const bool masked : {false, true}) {
    const OpCase c = lstm_case(masked);
    const Results got = run_reference(c);
    for (std::int64_t at = 0; at < 6; ++at) {
      const std::int64_t row = at / 2;
      const auto p = [&](int gate) {
        const std::int64_t place = row * 8 + gate * 2 + at % 2;
        return c.inputs[0].at(place) + c.inputs[1].at(place);
      };
      const double before = c.inputs[2].at(at);
      const double next = sigmoid(p(0)) * before + sigmoid(p(1)) * std::tanh(p(3));
      const double h = sigmoid(p(2)) * std::tanh(next);
      const bool does = steps(masked, row);
      CHECK(got.at("y0").at(at) == doctest::Approx(does ? next : before).epsilon(1e-14));
      CHECK(got.at("y1").at(at) == doctest::Approx(does ? h : c.inputs[3].at(at)).epsilon(1e-14));
    }
  }
}

TEST_CASE("recurrent ops: a GRU's h") {
  for (const bool masked : {false, true}) {
    const OpCase c = gru_case(masked);
    const Results got = run_reference(c);
    for (std::int64_t at = 0; at < 6; ++at) {
      const std::int64_t row = at / 2, z_at = row * 4 + at % 2, r_at = z_at + 2;
      const double z = sigmoid(c.inputs[0].at(z_at) + c.inputs[1].at(z_at));
      const double r = sigmoid(c.inputs[0].at(r_at) + c.inputs[1].at(r_at));
      const double k = std::tanh(c.inputs[2].at(at) + r * c.inputs[3].at(at));
      const double before = c.inputs[4].at(at), h = (1 - z) * before + z * k;
      CHECK(got.at("y0").at(at) == doctest::Approx(steps(masked, row) ? h : before).epsilon(1e-14));
    }
  }
}

TEST_CASE("recurrent ops: gradients") {
  for (const bool masked : {false, true}) {
    gradcheck(lstm_case(masked));
    gradcheck(gru_case(masked));
  }
}

// The loss may see only c, or only h after another norm of c.
TEST_CASE("recurrent ops: gradients where one output is not read") {
  OpCase c = lstm_case(false);
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::lstm_cell(g, v[0], v[1], v[2]).c, v[3]};
  };
  gradcheck(c);
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const ops::LstmCell cell = ops::lstm_cell(g, v[0], v[1], v[2]);
    return std::vector{ops::lstm_output(g, cell.o, v[3])};
  };
  gradcheck(c);
}

TEST_CASE("recurrent ops: refusals") {
  struct Refusal {
    const char *op, *part;
    std::function<Value(Graph&, Value state, Value gates, Value mask)> build;
  };
  const Refusal refusals[] = {
      {"lstm_cell", "u: expected (3, 8), got (3, 2)",
       [](auto& g, Value s, Value p, Value m) { return ops::lstm_cell(g, s, p, s, m).c; }},
      {"lstm_cell", "w: expected (3, 8), got (3, 2)",
       [](auto& g, Value s, Value p, Value) { return ops::lstm_cell(g, p, s, s).c; }},
      {"lstm_cell", "mask: expected (3), got (8)",
       [](auto& g, Value s, Value p, Value) {
         return ops::lstm_cell(g, p, p, s, g.constant(Tensor(DType::kU8, {8}))).c;
       }},
      {"lstm_cell", "mask: expected u8, got f32",
       [](auto& g, Value s, Value p, Value) {
         return ops::lstm_cell(g, p, p, s, g.constant(Tensor(DType::kF32, {3}))).c;
       }},
      {"lstm_cell", "state: expected (rows, width), got (3)",
       [](auto& g, Value, Value p, Value) {
         return ops::lstm_cell(g, p, p, g.constant(Tensor(DType::kF32, {3}))).c;
       }},
      {"lstm_output", "n: expected (3, 2), got (3, 8)",
       [](auto& g, Value s, Value p, Value) { return ops::lstm_output(g, s, p); }},
      {"lstm_output", "state before: expected one with a mask, none without, got none",
       [](auto& g, Value s, Value, Value m) { return ops::lstm_output(g, s, s, {}, m); }},
      {"lstm_output", "state before: expected one with a mask, none without, got one",
       [](auto& g, Value s, Value, Value) { return ops::lstm_output(g, s, s, s); }},
      {"gru_cell", "u: expected (3, 4), got (3, 8)",
       [](auto& g, Value s, Value p, Value) {
         return ops::gru_cell(g, {p, p, s, s, s});
       }},
      {"gru_cell", "q: expected (3, 2), got (3, 8)",
       [](auto& g, Value s, Value p, Value) {
         const Value gates = g.constant(Tensor(DType::kF32, {3, 4}));
         return ops::gru_cell(g, {gates, gates, s, p, s});
       }},
  };
  for (const Refusal& row : refusals) {
    Graph g;
    const Value state = g.input("state", {DType::kF32, {3, 2}}),
                gates = g.input("gates", {DType::kF32, {3, 8}}),
                mask = g.input("mask", {DType::kU8, {3}});
    CAPTURE(row.part);
    check_refused([&] { row.build(g, state, gates, mask); }, std::string("[") + row.op + "]",
                  row.part);
  }
}

}  // namespace
}  // namespace keel::test
