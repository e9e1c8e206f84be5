// Bounds of the element-wise parts of recurrent cells: their formulas (src/ops/recurrent.h) on
// numbers with errors.
#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/elementwise.h"
#include "src/ops/recurrent.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

Err one_minus(const Err& x) { return Err(1) - x; }

// A unit of a cell: where its numbers lie, and whether its row takes the step.
struct Unit {
  const ComparedNode& node;
  Bounds& bounds;
  std::size_t row, i, width;
  bool steps;

  // Its number in gate `gate` of an input (rows, gates * width), 0 where that is absent.
  Err in(int place, std::size_t gates = 1, std::size_t gate = 0) const {
    return node.has(place) ? node.in(place)[at(gates, gate)] : 0;
  }
  Err sigmoid(const Err& x) const { return applied(EwCode::kSigmoid, {x}, node.kernels); }
  Err tanh(const Err& x) const { return applied(EwCode::kTanh, {x}, node.kernels); }
  // (1 - z) a + z b, which other programs form as a + z (b - a), too.
  Err mix(const Err& z, const Err& a, const Err& b) const {
    const Err sum = one_minus(z) * a + z * b;
    return node.is_external() ? Err(sum.value, sum.error + 3 * kEps * (a.size() + b.size())) : sum;
  }
  void set(int place, const Err& value, std::size_t gates = 1, std::size_t gate = 0) const {
    if (node.outputs[std::size_t(place)].elements() == 0) return;
    bounds[std::size_t(place)].as<double>()[at(gates, gate)] = value.error;
  }

 private:
  std::size_t at(std::size_t gates, std::size_t gate) const {
    return (row * gates + gate) * width + i;
  }
};

// Calls rule(unit) for every unit of the state at place `state`.
template <class Rule>
void each_unit(const ComparedNode& n, Bounds& bounds, int state, int mask, const Rule& rule) {
  const CellSizes sizes = cell_sizes(n.input(state).shape());
  for (std::int64_t at = 0; at < sizes.elements(); ++at) {
    const std::int64_t row = at / sizes.width;
    const bool steps = !n.has(mask) || n.input(mask).as<std::uint8_t>()[std::size_t(row)] != 0;
    rule(Unit{n, bounds, std::size_t(row), std::size_t(at % sizes.width), std::size_t(sizes.width),
              steps});
  }
}

void lstm_cell(const ComparedNode& n, Bounds& bounds) {
  using In = LstmCellInput;
  using Out = LstmCellOutput;
  each_unit(n, bounds, In::kBefore, In::kMask, [](const Unit& unit) {
    const auto p = [&](std::size_t gate) {
      return unit.in(In::kU, 4, gate) + unit.in(In::kW, 4, gate);
    };
    const Err f = unit.sigmoid(p(0)), i = unit.sigmoid(p(1)), g = unit.tanh(p(3));
    unit.set(Out::kO, unit.sigmoid(p(2)));
    unit.set(Out::kFig, f, 3, 0);
    unit.set(Out::kFig, i, 3, 1);
    unit.set(Out::kFig, g, 3, 2);
    if (unit.steps) unit.set(Out::kC, f * unit.in(In::kBefore) + i * g);
  });
}

void lstm_cell_backward(const ComparedNode& n, Bounds& bounds) {
  using In = LstmCellBackwardInput;
  using Out = LstmCellBackwardOutput;
  each_unit(n, bounds, In::kBefore, In::kMask, [](const Unit& unit) {
    if (!unit.steps) return;
    const Err f = unit.in(In::kFig, 3, 0), i = unit.in(In::kFig, 3, 1), g = unit.in(In::kFig, 3, 2);
    const Err o = unit.in(In::kO), dc = unit.in(In::kDc);
    unit.set(Out::kDu, dc * unit.in(In::kBefore)*f * one_minus(f), 4, 0);
    unit.set(Out::kDu, dc * g * i * one_minus(i), 4, 1);
    unit.set(Out::kDu, unit.in(In::kDo)*o * one_minus(o), 4, 2);
    unit.set(Out::kDu, dc * i * one_minus(g * g), 4, 3);
    unit.set(Out::kDbefore, dc * f);
  });
}

void lstm_output(const ComparedNode& n, Bounds& bounds) {
  using In = LstmOutputInput;
  each_unit(n, bounds, In::kO, In::kMask, [](const Unit& unit) {
    const Err value = unit.tanh(unit.in(In::kN));
    unit.set(LstmOutputOutput::kTanh, value);
    if (unit.steps) unit.set(LstmOutputOutput::kH, unit.in(In::kO)*value);
  });
}

void lstm_output_backward(const ComparedNode& n, Bounds& bounds) {
  using In = LstmOutputBackwardInput;
  using Out = LstmOutputBackwardOutput;
  each_unit(n, bounds, In::kO, In::kMask, [](const Unit& unit) {
    if (!unit.steps) return;
    const Err value = unit.in(In::kTanh), dh = unit.in(In::kDh);
    unit.set(Out::kDo, dh * value);
    unit.set(Out::kDn, dh * unit.in(In::kO)*one_minus(value * value));
  });
}

void gru_cell(const ComparedNode& n, Bounds& bounds) {
  using In = GruCellInput;
  using Out = GruCellOutput;
  each_unit(n, bounds, In::kBefore, In::kMask, [](const Unit& unit) {
    const Err z = unit.sigmoid(unit.in(In::kU, 2, 0) + unit.in(In::kW, 2, 0));
    const Err r = unit.sigmoid(unit.in(In::kU, 2, 1) + unit.in(In::kW, 2, 1));
    const Err k = unit.tanh(unit.in(In::kA) + r * unit.in(In::kQ));
    unit.set(Out::kZrk, z, 3, 0);
    unit.set(Out::kZrk, r, 3, 1);
    unit.set(Out::kZrk, k, 3, 2);
    if (unit.steps) unit.set(Out::kH, unit.mix(z, unit.in(In::kBefore), k));
  });
}

void gru_cell_backward(const ComparedNode& n, Bounds& bounds) {
  using In = GruCellBackwardInput;
  using Out = GruCellBackwardOutput;
  each_unit(n, bounds, In::kBefore, In::kMask, [](const Unit& unit) {
    if (!unit.steps) return;
    const Err z = unit.in(In::kZrk, 3, 0), r = unit.in(In::kZrk, 3, 1), k = unit.in(In::kZrk, 3, 2);
    const Err dh = unit.in(In::kDh), ds = dh * z * one_minus(k * k);
    const Err dz = dh * (k - unit.in(In::kBefore));
    unit.set(Out::kDu, dz * z * one_minus(z), 2, 0);
    unit.set(Out::kDu, ds * unit.in(In::kQ)*r * one_minus(r), 2, 1);
    unit.set(Out::kDa, ds);
    unit.set(Out::kDq, ds * r);
    unit.set(Out::kDbefore, dh * one_minus(z));
  });
}

}  // namespace

void add_recurrent_rules(BoundRules& rules) {
  rules["lstm_cell"] = lstm_cell;
  rules["lstm_cell_backward"] = lstm_cell_backward;
  rules["lstm_output"] = lstm_output;
  rules["lstm_output_backward"] = lstm_output_backward;
  rules["gru_cell"] = gru_cell;
  rules["gru_cell_backward"] = gru_cell_backward;
}

}  // namespace keel::compare
