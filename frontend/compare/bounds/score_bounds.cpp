// Bounds of the norms of a row whose gain moves by a score of the row (NormTraits):
// y = (tanh(score) a + gain) xhat with score = sum(x b). kForwardBound and kBackwardBound units in
// the last place on the sizes of what is added up.
#include <algorithm>
#include <cmath>

#include "frontend/compare/bounds/norm_view.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/norm/norm.h"
#include "src/ops/norm/norm_ops.h"

namespace keel::compare {
namespace {

constexpr double kForwardUnits = kForwardBound * 2 * kEps,
                 kBackwardUnits = kBackwardBound * 2 * kEps;

// A node's view of x with the terms of the score.
class ScoreNode {
 public:
  explicit ScoreNode(const ComparedNode& n)
      : n_(n), is_backward_(!n.node().op->norm), view_(n, is_backward_) {}

  const NormView& view() const { return view_; }
  double x(std::size_t e) const { return n_.in(NormInput::kX)[e]; }
  double dy(std::size_t e) const { return n_.in(place("dy"))[e]; }
  double a(std::size_t e) const { return n_.in(place("a"))[view_.feature(e)]; }
  double b(std::size_t e) const { return n_.in(place("b"))[view_.feature(e)]; }
  double score(std::size_t k) const {
    const OpInfo& op = *n_.node().op;
    return is_backward_ ? n_.in(place("score"))[k] : n_.out(output_place(op, "score"))[k];
  }
  // The sizes of the gain's two terms.
  double weight(std::size_t e) const {
    return std::abs(view_.gain(e)) + std::abs(std::tanh(score(view_.group(e))) * a(e));
  }
  double xhat(std::size_t e) const { return std::abs(view_.xhat(e)); }

 private:
  int place(std::string_view name) const { return input_place(*n_.node().op, name); }

  const ComparedNode& n_;
  bool is_backward_;
  NormView view_;
};

double slope_at(double score) {
  const double cosh = std::cosh(score);
  return 1 / (cosh * cosh);
}

// rstd as in other norms; the score on the sum of |x b|; y on its terms, and on what the score's
// error moves.
void forward_score(const ComparedNode& n, NodeBounds& bounds) {
  const ScoreNode node(n);
  const NormView& view = node.view();
  const int rstd = view.places().rstd, score = output_place(*n.node().op, "score");
  std::vector<double> sizes(view.groups());
  for (std::size_t e = 0; e < view.size(); ++e) {
    sizes[view.group(e)] += std::abs(node.x(e) * node.b(e));
  }
  for (std::size_t k = 0; k < view.groups(); ++k) {
    bounds[std::size_t(rstd)].as<double>()[k] = 2 * kForwardUnits * std::abs(view.rstd(k)) + kTiny;
    bounds[std::size_t(score)].as<double>()[k] = kForwardUnits * sizes[k] + kTiny;
  }
  for (std::size_t e = 0; e < view.size(); ++e) {
    const std::size_t k = view.group(e);
    const double off = kForwardUnits * sizes[k], tanh = std::tanh(node.score(k));
    const double moved =
        std::max(std::tanh(node.score(k) + off) - tanh, tanh - std::tanh(node.score(k) - off));
    bounds[NormOutput::kY].as<double>()[e] =
        kForwardUnits * node.weight(e) * std::max(1.0, node.xhat(e)) +
        std::abs(node.a(e)) * node.xhat(e) * moved + kTiny;
  }
}

// The sums of a row that its dx has: of |g xhat| and of |dy a xhat|, and its largest |g|, |xhat|.
struct ScoreTerms {
  double products = 0, of_a = 0, largest_g = 0, largest_xhat = 0;
};

void backward_score(const ComparedNode& n, NodeBounds& bounds) {
  const ScoreNode node(n);
  const NormView& view = node.view();
  std::vector<ScoreTerms> terms(view.groups());
  for (std::size_t e = 0; e < view.size(); ++e) {
    ScoreTerms& t = terms[view.group(e)];
    const double g = std::abs(node.dy(e)) * node.weight(e);
    t.products += g * node.xhat(e);
    t.of_a += std::abs(node.dy(e) * node.a(e)) * node.xhat(e);
    t.largest_g = std::max(t.largest_g, g);
    t.largest_xhat = std::max(t.largest_xhat, node.xhat(e));
  }
  const double width = double(view.size()) / double(std::max<std::size_t>(view.groups(), 1));
  for (std::size_t e = 0; e < view.size(); ++e) {
    const std::size_t k = view.group(e), p = view.feature(e);
    const ScoreTerms& t = terms[k];
    const double of_score = slope_at(node.score(k)) * t.of_a;
    const double own =
        std::abs(view.rstd(k)) * std::max(t.largest_g, t.largest_xhat * t.products / width);
    const double product = std::abs(node.dy(e)) * node.xhat(e);
    bounds[keel::NormGradient::kDx].as<double>()[e] =
        kBackwardUnits * (own + of_score * std::abs(node.b(e))) + kTiny;
    const double units[] = {product, std::abs(std::tanh(node.score(k))) * product,
                            of_score * std::abs(node.x(e))};
    for (std::size_t output = 1; output < n.outputs.size(); ++output) {
      if (n.outputs[output].elements() == 0) continue;
      bounds[output].as<double>()[p] += kBackwardUnits * units[output - 1] + kTiny;
    }
  }
}

}  // namespace

void add_score_rules(BoundRules& rules) {
  for (const OpInfo* op : norm_ops()) {
    const OpInfo* forward = forward_norm(*op);
    if (forward == nullptr || output_place(*forward, "score") < 0) continue;
    rules[op->name] = op->norm ? forward_score : backward_score;
  }
}

}  // namespace keel::compare
