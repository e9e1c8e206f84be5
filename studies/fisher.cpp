// The Fisher matrix of normalized generalized linear models (Ba, Kiros, Hinton 2016, section 5.2
// and appendix), with ds^2 = delta^T F delta / 2: what doubled weights do to its weight blocks, its
// gain block against the metric of an unnormalized model moved along its weights, and steps.
// That metric is the distance of two sets of parameters, KL(P(y | x; theta) || P(y | x; theta +
// delta)), to second order in delta (eq. 8), so that the relative error is proportional to delta.
// The paper's text says that the curvature along w_i changes by 1/2 when its norm doubles: the own
// block does by 1/4, the blocks shared with other rows by 1/2.
#include <algorithm>
#include <cmath>

#include "studies/fisher_steps.h"
#include "studies/list.h"
#include "studies/summary.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr std::int64_t kCases = 128, kInputs = 4, kOutputs = 3;

std::vector<Glm> make_models(std::uint64_t seed) {
  const Tensor x = mapped(normal({kCases, kInputs}, seed, "x"),
                          [](double value, std::int64_t) { return value + 0.5; });
  std::vector<Glm> models;
  for (const char* norm : {"none", "weightnorm", "batchnorm", "layernorm"}) {
    models.push_back({norm, x.clone(), normal({kOutputs, kInputs}, seed, "w"),
                      normal({kOutputs}, seed, "gain"), normal({kOutputs}, seed, "bias")});
  }
  return models;
}

// A square part of a matrix.
struct Block {
  std::int64_t first_row, first_column, size;
};

template <class F>
void for_each(const Tensor& matrix, const Block& b, const F& f) {
  for (std::int64_t i = 0; i < b.size; ++i) {
    for (std::int64_t j = 0; j < b.size; ++j) {
      f((b.first_row + i) * matrix.shape().back() + b.first_column + j);
    }
  }
}

double largest(const Tensor& matrix, const Block& b) {
  double size = 0;
  for_each(matrix, b, [&](std::int64_t e) { take_largest(size, std::abs(matrix.at(e))); });
  return size;
}

// The largest |after - factor before| of a block, relative to the largest |before|.
double block_error(const Tensor& before, const Tensor& after, const Block& b, double factor) {
  double error = 0;
  for_each(before, b, [&](std::int64_t e) {
    take_largest(error, std::abs(after.at(e) - factor * before.at(e)));
  });
  return error / largest(before, b);
}

double frobenius_ratio(const Tensor& before, const Tensor& after, const Block& b) {
  double old_sum = 0, new_sum = 0;
  for_each(before, b, [&](std::int64_t e) {
    old_sum += before.at(e) * before.at(e);
    new_sum += after.at(e) * after.at(e);
  });
  return std::sqrt(new_sum / old_sum);
}

// The trace of F_ww.
double trace(const Tensor& f) {
  double sum = 0;
  for (std::int64_t i = 0; i < kOutputs * kInputs; ++i) sum += f.at(i * f.shape()[0] + i);
  return sum;
}

Tensor gaussian_fisher(const Jacobian& j) { return fisher_matrix(j, gaussian_covariance(j.o)); }
Tensor softmax_fisher(const Jacobian& j) { return fisher_matrix(j, softmax_covariance(j.o)); }

// Weights with the first row, or all, doubled.
Glm doubled(const Glm& glm, bool all) {
  return glm.with(glm.x, mapped(glm.w, [all](double value, std::int64_t e) {
                    return all || e < kInputs ? 2 * value : value;
                  }));
}

void add_doubling(Backend& backend, const Glm& glm, Table& table, Result& result) {
  const Jacobian before = jacobian(backend, glm);
  const Jacobian all = jacobian(backend, doubled(glm, true));
  const Jacobian first = jacobian(backend, doubled(glm, false));
  const double ratio = trace(gaussian_fisher(all)) / trace(gaussian_fisher(before));
  const Tensor f = softmax_fisher(before), f1 = softmax_fisher(first);
  const Block own{0, 0, kInputs}, cross{0, kInputs, kInputs}, other{kInputs, kInputs, kInputs};
  table.rows.push_back({glm.norm, fmt::format("{:.4f}", ratio),
                        fmt::format("{:.4f}", frobenius_ratio(f, f1, own)),
                        fmt::format("{:.4f}", frobenius_ratio(f, f1, cross)),
                        fmt::format("{:.4f}", frobenius_ratio(f, f1, other))});
  judge_doubling(glm.norm,
                 {.formula = formula_error(glm, before),
                  .trace = ratio,
                  .own = block_error(f, f1, own, 0.25),
                  .cross = block_error(f, f1, cross, 0.5),
                  .other = block_error(f, f1, other, 1)},
                 result);
}

// F by the gains, or for a model without them by the lengths of the rows of W: moving along
// w_i / |w_i|.
Tensor gain_metric(const Glm& glm, const Jacobian& j, const Tensor& covariance) {
  Jacobian moved{kOutputs, kInputs, j.o.clone(), {}};
  for (std::int64_t e = 0; e < kCases * kOutputs; ++e) {
    for (std::int64_t i = 0; i < kOutputs; ++i) {
      double along = 0;
      for (std::int64_t d = 0; d < kInputs; ++d) {
        along += j.at(e / kOutputs, e % kOutputs, j.weight(i, d)) * row(glm.w, i)[std::size_t(d)];
      }
      const double by_gain = j.at(e / kOutputs, e % kOutputs, j.gain(i));
      moved.values.push_back(glm.norm == "none" ? along / length(row(glm.w, i)) : by_gain);
    }
    moved.values.resize(std::size_t((e + 1) * j.parameters()));
  }
  return fisher_matrix(moved, covariance);
}

void add_gains(Backend& backend, std::span<const Glm> models, Result& result) {
  const Tensor covariance = softmax_covariance(jacobian(backend, models[0]).o);
  const Block block{0, 0, kOutputs};
  Table table{
      "the metric by the gains, Cov(y | x) held: its factor when data or weights grow by 10",
      {{"norm", "x 10", "W 10"}}};
  std::vector<Tensor> metrics;
  for (const Glm& glm : models) {
    const auto metric = [&](const Glm& of) {
      return gain_metric(of, jacobian(backend, of), covariance);
    };
    const Tensor& before = metrics.emplace_back(metric(glm));
    const Tensor data = metric(glm.with(scaled(glm.x, 10), glm.w));
    const Tensor weights = metric(glm.with(glm.x, scaled(glm.w, 10)));
    table.rows.push_back({glm.norm, fmt::format("{:.4f}", frobenius_ratio(before, data, block)),
                          fmt::format("{:.4f}", frobenius_ratio(before, weights, block))});
    judge_gains(glm.norm,
                {block_error(before, data, block, gain_factor(glm.norm)),
                 block_error(before, weights, block, 1)},
                result);
  }
  result.tables.push_back(std::move(table));
  judge_moved_rows(block_error(metrics[1], metrics[0], block, 1), result);
}

// The paper prints the metric by the gains of batchnorm without xhat_i xhat_j, which makes it that
// by the biases: right only on the diagonal, and only where Cov(y | x) is the same for every case.
void add_printed_gains(Backend& backend, const Glm& batchnorm, Result& result) {
  const Jacobian j = jacobian(backend, batchnorm);
  const Tensor own = softmax_covariance(j.o), same = averaged(own);
  const auto difference = [&](const Tensor& covariance, bool diagonal) {
    const Tensor f = fisher_matrix(j, covariance);
    double largest = 0;
    for (std::int64_t e = 0; e < kOutputs * kOutputs; ++e) {
      const std::int64_t i = e / kOutputs, k = e % kOutputs, width = j.parameters();
      if ((i == k) != diagonal) continue;
      const double by_bias = f.at(j.bias(i) * width + j.bias(k));
      take_largest(largest, std::abs(f.at(j.gain(i) * width + j.gain(k)) - by_bias));
    }
    return largest;
  };
  judge_printed_gains({difference(same, true), difference(same, false), difference(own, true)},
                      result);
}

// The parameters moved by delta: (W, bias, gain) as a Jacobian has them.
Glm moved_by(const Glm& glm, const std::vector<double>& delta) {
  const auto add = [&](const Tensor& t, std::int64_t first) {
    return mapped(t, [&, first](double value, std::int64_t e) {
      return value + delta[std::size_t(first + e)];
    });
  };
  const std::int64_t weights = glm.w.elements();
  return {glm.norm, glm.x.clone(), add(glm.w, 0), add(glm.gain, weights + glm.outputs()),
          add(glm.bias, weights)};
}

std::vector<double> softmax_row(std::span<const double> o) {
  const double most = *std::ranges::max_element(o);
  std::vector<double> p;
  for (const double value : o) p.push_back(std::exp(value - most));
  const double sum = mean(p) * double(p.size());
  for (double& value : p) value /= sum;
  return p;
}

// exp(d) - 1 - d, for a small d by its series: the difference would be rounding.
double exp_beyond_linear(double d) {
  if (std::abs(d) > 0.1) return std::expm1(d) - d;
  double series = 1;
  for (int n = 12; n > 2; --n) series = 1 + d / n * series;
  return d * d / 2 * series;
}

// The mean over cases of KL(softmax(before) || softmax(after)). With p = softmax(before), and d =
// after - before less its mean under p, that is
//     log sum(p exp(d)) = log(1 + sum(p (exp(d) - 1 - d)))
double divergence(const Tensor& before, const Tensor& after) {
  double total = 0;
  for (std::int64_t c = 0; c < before.shape()[0]; ++c) {
    const std::vector<double> p = softmax_row(row(before, c)),
                              d = differences(row(after, c), row(before, c));
    const double centre = mean_product(p, d) * double(p.size());
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] * exp_beyond_linear(d[i] - centre);
    total += std::log1p(sum);
  }
  return total / double(before.shape()[0]);
}

// delta^T F delta / 2
double half_form(const Tensor& f, const std::vector<double>& delta) {
  double sum = 0;
  for (std::int64_t a = 0; a < std::ssize(delta); ++a) {
    sum += delta[std::size_t(a)] * mean_product(row(f, a), delta) * double(delta.size());
  }
  return sum / 2;
}

// The root of the mean square of KL / (delta^T F delta / 2) - 1 over directions.
double divergence_error(Backend& backend, const Glm& glm, double size, const Tensor& directions) {
  const Jacobian j = jacobian(backend, glm);
  const Tensor f = softmax_fisher(j);
  double squares = 0;
  for (std::int64_t i = 0; i < directions.shape()[0]; ++i) {
    const std::span<const double> direction = row(directions, i);
    std::vector<double> delta(direction.begin(), direction.end());
    for (double& d : delta) d *= size;
    const double kl = divergence(j.o, outputs(backend, moved_by(glm, delta)));
    squares += std::pow(kl / half_form(f, delta) - 1, 2);
  }
  return std::sqrt(squares / double(directions.shape()[0]));
}

void add_divergences(const Options& options, const std::vector<Glm>& models, Result& result) {
  constexpr std::int64_t kDirections = 10;
  const Tensor directions =
      normal({kDirections, kOutputs * (kInputs + 2)}, options.seed, "directions");
  Table table{
      "softmax outputs, parameters moved by a normal delta of this deviation: "
      "KL / (delta^T F delta / 2) - 1, root mean square of 10",
      {{"norm", "1e-4", "1e-5", "1e-6"}}};
  for (const Glm& glm : models) {
    std::vector<double> errors;
    std::vector<std::string>& cells = table.rows.emplace_back(std::vector{glm.norm});
    for (const double size : kMoveSizes) {
      errors.push_back(divergence_error(options.backend, glm, size, directions));
      cells.push_back(fmt::format("{:.3e}", errors.back()));
    }
    judge_divergences(glm.norm, errors, result);
  }
  result.tables.push_back(std::move(table));
}

}  // namespace

Result fisher(const Options& options) {
  const std::vector<Glm> models = make_models(options.seed);
  Result result;
  Table table{"factors of F_ww: Gaussian outputs, and softmax outputs with w_1 doubled",
              {{"norm", "tr, all doubled", "own block", "cross block", "another block"}}};
  for (const Glm& glm : models) add_doubling(options.backend, glm, table, result);
  result.tables.push_back(std::move(table));
  add_gains(options.backend, models, result);
  add_printed_gains(options.backend, models[2], result);
  add_steps(options, models, result);
  add_divergences(options, models, result);
  return result;
}

}  // namespace keel::study
