// Small graphs of given numbers, whose bounds a test works out by hand.
#pragma once

#include <map>

#include "frontend/compare/bounds/bounds.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "tests/frontend/compare/helpers.h"

namespace keel::compare {

// The bounds of the outputs of a node, in units of eps.
using NodeUnits = std::vector<std::vector<double>>;

// A graph whose inputs have given values.
class GivenGraph {
 public:
  Graph g;

  Value floats(const Shape& shape, std::initializer_list<float> values) {
    const Value v = add(Tensor::of<float>(shape, values));
    wrt_.push_back(v);
    return v;
  }
  // Such as a running statistic: no gradient is asked for.
  Value state(const Shape& shape, std::initializer_list<float> values) {
    return add(Tensor::of<float>(shape, values));
  }
  Value ints(const Shape& shape, std::initializer_list<std::int32_t> values) {
    return add(Tensor::of<std::int32_t>(shape, values));
  }
  // Sums that are not rounded yet.
  Value doubles(const Shape& shape, std::initializer_list<double> values) {
    return add(Tensor::of<double>(shape, values));
  }
  RandomKey key() { return {ints({}, {0}), ints({}, {0})}; }
  void mark_all(Value y) {
    for (int port = 0; port < int(g.node(y).outputs.size()); ++port) mark(y.at(port));
  }
  // Adds the backward of <y, dy>.
  void differentiate(Value y, std::initializer_list<float> dy) {
    mark_all(y);
    const std::vector<Value> wrt = wrt_;
    const Value weights = add(Tensor::of<float>(g.shape(y), dy));
    const Value loss = ops::sum(g, ops::mul(g, y, weights));
    for (Value d : gradient(g, loss, wrt)) mark(d);
  }

  // By op, those of its first node.
  std::map<std::string, NodeUnits> bounds(bool fused = false) {
    const auto reference = make_backend("reference"), again = make_backend("reference");
    GraphSubject subject({"given", "by hand"}, compared_graph(g, !fused),
                         [this](std::int64_t) { return copies(); });
    std::map<std::string, NodeUnits> found;
    CompareOptions options;
    options.sink = [&](const NodeReport& report, const NodeTensors& tensors) {
      if (report.op == "update" || found.contains(report.op)) return;
      NodeUnits& of = found[report.op];
      for (const Tensor& bound : tensors.bounds) {
        std::vector<double>& units = of.emplace_back();
        for (std::int64_t e = 0; e < bound.elements(); ++e) units.push_back(bound.at(e) / kEps);
      }
    };
    compare::compare(*reference, {again.get()}, subject, options);
    return found;
  }

 private:
  Value add(Tensor value) {
    const std::string name = fmt::format("in{}", feeds_.size());
    const Value v = g.input(name, value.type());
    feeds_[name] = std::move(value);
    return v;
  }
  void mark(Value v) { g.mark_output(fmt::format("y{}", g.outputs().size()), v); }
  Feeds copies() const {
    Feeds feeds;
    for (const auto& [name, value] : feeds_) feeds[name] = value.clone();
    return feeds;
  }

  Feeds feeds_;
  std::vector<Value> wrt_;
};

// The permitted error of an output of an op, worked out by hand, in units of eps.
struct HandBound {
  std::string op;
  int port;
  std::vector<double> units;
};

struct HandCase {
  void (*build)(GivenGraph&);
  std::vector<HandBound> bounds;
  bool fused = false;
};

// Neither a fifth more nor a fifth less; 0 stands for less than a ten thousandth.
inline bool is_near(double got, double expected) {
  if (expected == 0) return got >= 0 && got < 1e-4;
  return got < 1.2 * expected && got > expected / 1.2;
}

inline void check_hand_case(const HandCase& c) {
  GivenGraph given;
  c.build(given);
  const std::map<std::string, NodeUnits> found = given.bounds(c.fused);
  for (const HandBound& hand : c.bounds) {
    CAPTURE(hand.op);
    CAPTURE(hand.port);
    REQUIRE(found.contains(hand.op));
    const NodeUnits& outputs = found.at(hand.op);
    REQUIRE(hand.port < int(outputs.size()));
    const std::vector<double>& units = outputs[std::size_t(hand.port)];
    REQUIRE(units.size() == hand.units.size());
    for (std::size_t e = 0; e < units.size(); ++e) {
      CAPTURE(e);
      CAPTURE(units[e]);
      CAPTURE(hand.units[e]);
      CHECK(is_near(units[e], hand.units[e]));
    }
  }
}

// Cases of ops, losses, cells and optimizers; of relative attention; of gradients as rows; of
// norms; of statistics of columns.
const std::vector<HandCase>& op_hand_cases();
const std::vector<HandCase>& relative_hand_cases();
const std::vector<HandCase>& language_hand_cases();  // of the ops of language models
const std::vector<HandCase>& row_hand_cases();
const std::vector<HandCase>& norm_hand_cases();
const std::vector<HandCase>& column_hand_cases();

}  // namespace keel::compare
