#include "studies/batch_statistics.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "frontend/nn/norm.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/group_scaling.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/unified_norm.h"
#include "studies/lab.h"

namespace keel::study {
namespace {

constexpr WatchedNorm kWatchedNorms[] = {
    {"batchnorm", &kBatchNorm, "running_var", true, true, BatchNormInput::kMask,
     BatchNormBackwardInput::kDy},
    {"pn_v", &kPnV, "psi2", false, true, PnVInput::kMask, PnVBackwardInput::kDy},
    {"powernorm", &kPowerNorm, "psi2", false, false, PowerNormInput::kMask,
     PowerNormBackwardInput::kDy},
    {"unifiednorm", &kUnifiedNorm, "v", false, false, UnifiedNormInput::kMask,
     UnifiedNormBackwardInput::kDy}};

Tensor kept_rows(const Tensor& t, const Tensor& mask) {
  std::vector<double> kept;
  for (std::int64_t i = 0; i < t.shape()[0]; ++i) {
    if (mask.at(i) == 0) continue;
    const auto of = row(t, i);
    kept.insert(kept.end(), of.begin(), of.end());
  }
  const std::int64_t width = t.shape()[1], rows = std::ssize(kept) / width;
  return Tensor::of<double>({rows, width}, kept);
}

// The moments of one feature over the rows.
struct FeatureMoments {
  double mean = 0, square = 0, dy = 0, dy_xhat = 0;
};

FeatureMoments feature_moments(const std::vector<double>& x, const std::vector<double>& dy,
                               const WatchedNorm& norm) {
  FeatureMoments m{.mean = norm.is_centred ? mean(x) : 0, .dy = mean(dy)};
  std::vector<double> xhat = x;
  for (double& value : xhat) value -= m.mean;
  m.square = mean_product(xhat, xhat);
  m.dy_xhat = mean_product(dy, xhat) / std::sqrt(m.square + norm.eps);
  return m;
}

// The x of the norm's formulas: its input, or the scaled rows of it where the op scales them.
Value normalized_input(Graph& g, const Node& norm) {
  const Value x = norm.inputs[NormInput::kX];
  if (norm.op != &kPowerNorm) return ops::scale(g, x, 1);
  const auto& attrs = norm.attrs.as<PowerNormAttrs>();
  if (!attrs.is_scaled()) return ops::scale(g, x, 1);
  return ops::group_scaling(g, x, {.groups = attrs.groups, .eps = attrs.scaling_eps});
}

}  // namespace

Value rows_of_features(Graph& g, Value x) {
  const Shape shape = g.shape(x);
  if (shape.rank() == 2) return ops::scale(g, x, 1);
  const Value last = ops::transpose(g, x, {0, 2, 3, 1});
  return ops::reshape(g, last, {shape.elements() / shape[1], shape[1]});
}

WatchedNorm watched_norm(const std::string& norm, const std::string& where) {
  const nn::Norm parsed = nn::Norm::parse(norm);
  const auto found = std::ranges::find(kWatchedNorms, parsed.name(), &WatchedNorm::name);
  check(found != std::end(kWatchedNorms), ErrorKind::kUsage,
        "{}: expected batchnorm, pn_v, powernorm or unifiednorm, got {}", where, norm);
  WatchedNorm watched = *found;
  const std::string eps = parsed.option("eps");
  std::from_chars(eps.data(), eps.data() + eps.size(), watched.eps);
  return watched;
}

void mark_values(Graph& graph, const ObservedNorm& site, const WatchedNorm& norm) {
  const Node forward = graph.node(site.forward);  // a copy: new nodes move the graph's own
  const std::vector<Value>& inputs = forward.inputs;
  mark(graph, site, "x", rows_of_features(graph, normalized_input(graph, forward)));
  mark(graph, site, "dy",
       rows_of_features(graph, graph.node(site.backward).inputs[std::size_t(norm.dy)]));
  const std::size_t mask = std::size_t(norm.mask);
  const Value given = mask < inputs.size() ? inputs[mask] : Value();
  if (given.valid()) mark(graph, site, "mask", ops::reshape(graph, given, graph.shape(given)));
}

NormValues values_at(const Program& program, const ObservedNorm& site) {
  NormValues values{fetch(program, site, "x"), fetch(program, site, "dy")};
  const auto& outputs = program.graph().outputs();
  const auto mask = std::ranges::find(outputs, site.name + "/mask", &NamedValue::name);
  if (mask == outputs.end()) return values;
  const Tensor kept = fetch(program, site, "mask");
  return {kept_rows(values.x, kept), kept_rows(values.dy, kept)};
}

BatchStatistics batch_statistics(const NormValues& values, const NormBefore& before,
                                 const WatchedNorm& norm) {
  const std::int64_t rows = values.x.shape()[0], d = values.x.shape()[1];
  std::vector<double> row_squares(std::size_t(rows), 0);
  std::vector<double> to_mean, to_square, to_deviation, deviations, through_mean;
  for (std::int64_t c = 0; c < d; ++c) {
    const std::vector<double> x = column(values.x, c);
    const FeatureMoments m = feature_moments(x, column(values.dy, c), norm);
    const double factor = before.gain.at(c) / std::sqrt(m.square + norm.eps);
    if (norm.is_centred) to_mean.push_back(m.mean - before.mean.at(c));
    to_square.push_back(m.square - before.square.at(c));
    deviations.push_back(std::sqrt(before.square.at(c)));
    to_deviation.push_back(std::sqrt(m.square) - deviations.back());
    through_mean.push_back(norm.is_centred ? factor * m.dy : 0);
    const double slope = factor * m.dy_xhat / std::sqrt(m.square + norm.eps);
    for (std::size_t i = 0; i < x.size(); ++i) {
      row_squares[i] += std::pow(slope * (x[i] - m.mean), 2);
    }
  }
  BatchStatistics result{length(to_mean) / double(d), length(to_square) / double(d),
                         length(through_mean) / double(d)};
  result.tid_deviation = length(to_deviation) / length(deviations);
  result.tid_mean = length(to_mean) / length(deviations);
  if (!norm.is_centred) result.distance_mean = result.tid_mean = 0;
  for (const double square : row_squares) {
    result.gradient_square += std::sqrt(square) / double(rows) / double(d);
  }
  return result;
}

}  // namespace keel::study
