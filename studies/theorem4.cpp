// Theorem 4 of Shen et al. 2020: the gradient of PowerNorm is bounded. Its recursion
//     nu' = nu (1 - (1 - alpha) Gamma) + (1 - alpha) Lambda
// is a weighted mean of nu and Lambda / Gamma while 0 < (1 - alpha) Gamma < 1, hence
//     |nu_t| <= N_t = max(|nu_0|, max over steps of |Lambda / Gamma|),
//     |dx| <= (|g| + N_t |xhat|) / psi
// Above Gamma = 2 / (1 - alpha) it diverges.
#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "frontend/nn/init.h"
#include "src/autodiff/gradient.h"
#include "src/ops/norm/power_norm.h"
#include "src/runtime/program.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr std::int64_t kRecursionRows = 16, kRecursionFeatures = 8;
constexpr int kRecursionSteps = 3000;

// One PowerNorm layer, without gain and bias, in training.
class PowerNormLayer {
 public:
  PowerNormLayer(Backend& backend, const Shape& x, const PowerNormAttrs& attrs, double nu)
      : variables_(backend, 0) {
    const TensorType channels{DType::kF64, {x[1]}};
    const ops::PowerNormState state{graph_.state("psi2", channels, nn::constant(1)),
                                    graph_.state("nu", channels, nn::constant(nu)),
                                    {},
                                    {}};
    const Value in = input(graph_, "x", x), dy = input(graph_, "dy", x);
    const Value y = ops::power_norm(graph_, in, {}, state, attrs), wrt[] = {in};
    const Gradients gradients = differentiate(graph_, dot(graph_, y, dy), wrt);
    graph_.mark_output("dx", gradients.of[0]);
    for (const Update& update : gradients.states) graph_.mark_update(update.leaf, update.next);
    graph_.mark_output("contraction", y.at(PowerNormOutput::kContraction));
    graph_.mark_update(state.psi2, y.at(PowerNormOutput::kNextPsi2));
    program_.emplace(backend, variables_, graph_);
  }

  void step(const Tensor& x, const Tensor& dy) {
    program_->feed("x", x);
    program_->feed("dy", dy);
    program_->run();
  }
  Tensor fetch(const std::string& output) const { return program_->fetch(output); }
  Tensor state(const std::string& name) const { return variables_.read(name); }

 private:
  Graph graph_;
  Variables variables_;
  std::optional<Program> program_;
};

// The state of one feature, computed plainly from the definition.
struct RecursionFeature {
  double psi2 = 1, nu = 0, bound = 0;
};

struct RecursionWorst : RecursionNumbers {
  double nu = 0;  // the largest |nu|
};

// A layer on its way, and the same by the definition beside it.
class Walk {
 public:
  const double alpha, nu;  // nu_0
  RecursionWorst worst;

  Walk(Backend& backend, double alpha_, double nu_)
      : alpha(alpha_),
        nu(nu_),
        layer_(backend, {kRecursionRows, kRecursionFeatures},
               {.mode = PowerNormMode::kPaper, .eps = 0, .alpha_f = alpha, .alpha_b = alpha}, nu),
        features_(std::size_t(kRecursionFeatures), RecursionFeature{1, nu, std::abs(nu)}) {}

  void step(const Tensor& x, const Tensor& g) {
    layer_.step(x, g);
    take_largest(worst.contraction, layer_.fetch("contraction").at(0));
    const Tensor dx = layer_.fetch("dx"), nu_now = layer_.state("nu"), psi2 = layer_.state("psi2");
    for (std::int64_t c = 0; c < kRecursionFeatures; ++c) {
      RecursionFeature& f = features_[std::size_t(c)];
      follow(f, column(x, c), column(g, c), column(dx, c));
      const double size = std::abs(nu_now.at(c));
      take_largest(worst.nu, size);
      take_largest(worst.used, size / f.bound);
      take_largest(worst.error, std::abs(nu_now.at(c) - f.nu) / f.bound);
      take_largest(worst.error, std::abs(psi2.at(c) / f.psi2 - 1));
    }
  }

 private:
  // Holds dx against the definition and takes the feature's next step.
  void follow(RecursionFeature& f, std::vector<double> x, std::span<const double> g,
              std::span<const double> dx) {
    const double psi = std::sqrt(f.psi2), batch = mean_product(x, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double xhat = x[i] /= psi, limit = std::abs(g[i]) + f.bound * std::abs(xhat);
      take_largest(worst.dx_used, std::abs(dx[i]) * psi / limit);
      take_largest(worst.error, std::abs(dx[i] * psi - (g[i] - f.nu * xhat)) / limit);
    }
    const double gamma = mean_product(x, x), lambda = mean_product(g, x);
    f.nu = f.nu * (1 - (1 - alpha) * gamma) + (1 - alpha) * lambda;
    f.psi2 = alpha * f.psi2 + (1 - alpha) * batch;
    f.bound = std::max(f.bound, std::abs(lambda / gamma));
  }

  PowerNormLayer layer_;
  std::vector<RecursionFeature> features_;
};

// Features of their own size, within [0.5, 2], and a gradient that leans on x.
void take_steps(std::deque<Walk>& walks, std::uint64_t seed) {
  for (int t = 0; t < kRecursionSteps; ++t) {
    const Tensor unit = normal({kRecursionRows, kRecursionFeatures}, seed, fmt::format("x{}", t));
    const Tensor noise = normal({kRecursionRows, kRecursionFeatures}, seed, fmt::format("g{}", t));
    const Tensor x = mapped(unit, [](double value, std::int64_t i) {
      return value * std::exp2(2 * double(i % kRecursionFeatures) / (kRecursionFeatures - 1) - 1);
    });
    const Tensor g =
        mapped(noise, [&](double value, std::int64_t i) { return value + 0.3 * x.at(i); });
    for (Walk& walk : walks) walk.step(x, g);
  }
}

void add_walks(const Options& options, Result& result) {
  std::deque<Walk> walks;
  for (double alpha : {0.9, 0.95, 0.99}) {
    for (double nu : {0.0, 3.0}) walks.emplace_back(options.backend, alpha, nu);
  }
  take_steps(walks, options.seed);
  Table table{fmt::format("{} steps; N = max(|nu_0|, max |Lambda / Gamma|)", kRecursionSteps),
              {{"alpha", "nu_0", "max (1 - alpha) Gamma", "max |nu|", "max |nu| / N",
                "max |dx| psi / (|g| + N |xhat|)", "error of the recursion"}}};
  for (const Walk& walk : walks) {
    const RecursionWorst& worst = walk.worst;
    table.rows.push_back({fmt::format("{}", walk.alpha), fmt::format("{}", walk.nu),
                          fmt::format("{:.4f}", worst.contraction), fmt::format("{:.4f}", worst.nu),
                          fmt::format("{:.4f}", worst.used), fmt::format("{:.4f}", worst.dx_used),
                          fmt::format("{:.1e}", worst.error)});
    judge_recursion(fmt::format("alpha {}, nu_0 {}: ", walk.alpha, walk.nu), worst, result);
  }
  result.tables.push_back(std::move(table));
}

// One row x = sqrt(Gamma) and dy = 0 with psi = 1 held: Lambda = 0, nu_0 = 1.
double nu_after_200(Backend& backend, double gamma) {
  const Tensor x = mapped(Tensor(DType::kF64, {1, 1}),
                          [gamma](double, std::int64_t) { return std::sqrt(gamma); });
  const Tensor dy(DType::kF64, {1, 1});
  PowerNormLayer layer(backend, {1, 1},
                       {.mode = PowerNormMode::kPaper, .eps = 0, .alpha_f = 1, .alpha_b = 0.9}, 1);
  for (int t = 0; t < 200; ++t) layer.step(x, dy);
  return std::abs(layer.state("nu").at(0));
}

void add_control(Backend& backend, Result& result) {
  Table table{"alpha = 0.9, Lambda = 0, nu_0 = 1: |nu| after 200 steps", {{"Gamma", "|nu|"}}};
  for (double gamma : {19.0, 20.0, 21.0}) {
    const double nu = nu_after_200(backend, gamma);
    table.rows.push_back({fmt::format("{}", gamma), fmt::format("{:.4g}", nu)});
    judge_divergence(gamma, nu, result);
  }
  result.tables.push_back(std::move(table));
}

}  // namespace

Result theorem4(const Options& options) {
  Result result;
  add_walks(options, result);
  add_control(options.backend, result);
  return result;
}

}  // namespace keel::study
