// Bounds worked out by hand: no rule can grow or shrink by more than a fifth unnoticed.
#include "tests/frontend/compare/hand_bounds.h"

#include <cmath>
#include <set>

#include "src/ops/op_table.h"

namespace keel::compare {
namespace {

// The bound of an element-wise op on one number each, in units of eps.
struct HandElement {
  EwCode code;
  std::vector<float> operands;
  double units;
};

// docs/numerics.md, "Element-wise ops": so many eps of the result.
std::vector<HandElement> hand_elements() {
  using enum EwCode;
  const double s = 1 / (1 + std::exp(-1.0)), phi = std::erfc(-1 / std::sqrt(2)) / 2;
  const double gelu_slope = phi + std::exp(-0.5) / std::sqrt(2 * M_PI);
  return {{kAdd, {2, 1}, 3},
          {kSub, {2, 0.5}, 1.5},
          {kMul, {2, 3}, 6},
          {kDiv, {3, 2}, 2 * 1.5},
          {kMaximum, {3, 2}, 0},
          {kMinimum, {3, 2}, 0},
          {kNeg, {3}, 0},
          {kAbs, {-3}, 0},
          {kRelu, {3}, 0},
          {kSquare, {3}, 9},
          {kSqrt, {4}, 2 * 2},
          {kExp, {1}, 3.4 * std::exp(1.0)},
          {kLog, {8}, 3.4 * std::log(8.0)},
          {kTanh, {0.5}, 4.4 * std::tanh(0.5)},
          {kSigmoid, {1}, 5 * s},
          {kGelu, {1}, 8.6 * phi},
          {kGelu, {-2}, (8.6 + 4 * 4) * 2 * (std::erfc(std::sqrt(2)) / 2)},
          {kSoftplus, {1}, 5 * std::log1p(std::exp(1.0))},
          {kSqrtBackward, {3, 2}, 3 * 0.75},
          {kReluBackward, {3, 2}, 0},
          {kTanhBackward, {2, 0.5}, 2 * 1.5 + 2 * 2},
          {kSigmoidBackward, {2, 0.25}, 4 * 2 * 0.25 * 0.75},
          {kSquareBackward, {3, 2}, 3 * 12},
          {kAbsBackward, {3, 2}, 0},
          {kGeluBackward, {2, 1}, 2 * 2 * gelu_slope + 10 * 2},
          {kSoftplusBackward, {2, 0}, 6 * 1},
          {kGreaterEqualBackward, {3, 2, 1}, 0},
          {kLessBackward, {3, 1, 2}, 0}};
}

double element_units(EwCode code, const std::vector<float>& operands) {
  GivenGraph given;
  std::vector<Value> values;
  for (float x : operands) values.push_back(given.floats({1}, {x}));
  given.mark_all(ops::elementwise(given.g, code, values));
  return given.bounds().at(std::string(elementwise_op(code).name))[0][0];
}

TEST_CASE("hand bounds: every element-wise op") {
  std::set<EwCode> seen{EwCode::kScale, EwCode::kCast, EwCode::kLess, EwCode::kEqual,
                        EwCode::kSelect};
  for (const HandElement& hand : hand_elements()) {
    CAPTURE(elementwise_op(hand.code).name);
    CAPTURE(hand.units);
    const double units = element_units(hand.code, hand.operands);
    CAPTURE(units);
    CHECK(is_near(units, hand.units));
    seen.insert(hand.code);
  }
  CHECK(int(seen.size()) == kEwCount);
}

TEST_CASE("hand bounds: factor x + offset, whose constants are rounded, too") {
  GivenGraph given;
  given.mark_all(ops::scale(given.g, given.floats({1}, {2}), 1.7, -0.3));
  CHECK(is_near(given.bounds().at("scale")[0][0], 2 * 3.4 + 0.3 + 3.1));
}

TEST_CASE("hand bounds: every op") {
  for (const HandCase& c : op_hand_cases()) check_hand_case(c);
  for (const HandCase& c : relative_hand_cases()) check_hand_case(c);
  for (const HandCase& c : language_hand_cases()) check_hand_case(c);
}

TEST_CASE("hand bounds: gradients as rows") {
  for (const HandCase& c : row_hand_cases()) check_hand_case(c);
}

TEST_CASE("hand bounds: statistics of columns") {
  for (const HandCase& c : column_hand_cases()) check_hand_case(c);
}

TEST_CASE("hand bounds: every norm") {
  for (const HandCase& c : norm_hand_cases()) check_hand_case(c);
}

// Ops that move, choose and count elements.
const std::set<std::string> kExactOps{"max",        "max_backward",  "broadcast_to",
                                      "reshape",    "transpose",     "slice",
                                      "split",      "concat",        "pad",
                                      "max_pool2d", "embedding",     "classification_errors",
                                      "top_k",      "scatter",       "stop_gradient",
                                      "cast",       "less",          "equal",
                                      "select",     "clip_gradient", "greater_equal_backward",
                                      "maximum",    "minimum",       "less_backward",
                                      "group_ids"};

TEST_CASE("hand bounds: every op has some, or is exact") {
  std::set<std::string> known = kExactOps;
  for (const HandElement& hand : hand_elements()) {
    known.emplace(elementwise_op(hand.code).name);
  }
  known.emplace("scale");
  for (const auto* cases : {&op_hand_cases(), &relative_hand_cases(), &language_hand_cases(),
                            &row_hand_cases(), &norm_hand_cases(), &column_hand_cases()}) {
    for (const HandCase& c : *cases) {
      for (const HandBound& hand : c.bounds) known.insert(hand.op);
    }
  }
  for (const OpInfo* op : all_ops()) {
    CAPTURE(std::string(op->name));
    CHECK(known.contains(std::string(op->name)));
  }
}

TEST_CASE("hand bounds: what is exact may be off by nothing") {
  const TestBackends backends;
  for (const std::string& op : kExactOps) {
    const std::vector<std::string> names = subject_ops();
    if (std::ranges::count(names, op) == 0) continue;
    const auto subjects = op_subjects(op, {.unfused = true});
    CompareOptions options;
    int seen = 0;
    options.sink = [&](const NodeReport& report, const NodeTensors& tensors) {
      if (report.op != op) return;
      ++seen;
      for (const Tensor& bound : tensors.bounds) {
        for (std::int64_t e = 0; e < bound.elements(); ++e) CHECK(bound.at(e) == 0);
      }
    };
    CAPTURE(op);
    backends.compare(*subjects[0], options);
    CHECK(seen > 0);
  }
}

}  // namespace
}  // namespace keel::compare
