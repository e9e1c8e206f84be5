// Bounds of the attention in drawing and handwriting: the soft window over a text, and the filters
// of attention on an image.
#include <cmath>

#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/ops/attention_window.h"
#include "src/ops/filter_bank.h"

namespace keel::compare {
namespace {

using Bounds = NodeBounds;

// exp, whose own error is twice the 1.7 units in the last place of simd/math.h.
Err exponential(const Err& x) {
  const double y = std::exp(x.value);
  return Err(y, y * std::expm1(x.error)).rounded(3.4);
}

// A sum of terms that each have an error.
struct ErrSum {
  double value = 0, error = 0, size = 0;
  std::int64_t terms = 0;

  void add(const Err& term) {
    value += term.value;
    error += term.error;
    size += term.size();
    ++terms;
  }
  Err total() const { return {value, error + sum_error(terms) * size + kTiny}; }
};

// The window of one row of the batch.
struct WindowRow {
  const ComparedNode& n;
  AttentionWindowSizes sizes;
  std::int64_t row, symbols;

  Err component(std::int64_t kind, std::int64_t k) const {
    const std::int64_t place = (3 * row + kind) * sizes.bumps + k;
    return exponential(Err(n.in(AttentionWindowInput::kComponents)[std::size_t(place)]));
  }
  std::int32_t symbol(std::int64_t u) const {
    return n.input(AttentionWindowInput::kText)
        .as<std::int32_t>()[std::size_t(row * sizes.length + u)];
  }
  double kappa(std::int64_t k) const {
    return n.in(AttentionWindowInput::kKappa)[std::size_t(row * sizes.bumps + k)];
  }
};

Err bump(const Err& beta, const Err& d) {
  const Err argument = beta * d * d;
  return exponential(Err(-argument.value, argument.error));
}

template <class Rule>
void for_each_window(const ComparedNode& n, const Rule& rule) {
  using In = AttentionWindowInput;
  const AttentionWindowSizes sizes =
      attention_window_sizes(n.input(In::kBefore).shape(), n.input(In::kText).shape());
  const std::int64_t symbols = n.attrs<AttentionWindowAttrs>().symbols;
  for (std::int64_t row = 0; row < sizes.rows; ++row) rule(WindowRow{n, sizes, row, symbols});
}

void attention_window(const ComparedNode& n, Bounds& bounds) {
  using Out = AttentionWindowOutput;
  for_each_window(n, [&](const WindowRow& of) {
    const auto& [rows, bumps, length] = of.sizes;
    std::vector<Err> kappa;
    for (std::int64_t k = 0; k < bumps; ++k) {
      kappa.push_back(Err(of.kappa(k)) + of.component(2, k));
      bounds[Out::kKappa].as<double>()[std::size_t(of.row * bumps + k)] = kappa.back().error;
    }
    std::vector<ErrSum> w(std::size_t(of.symbols));
    for (std::int64_t u = 0; u < length; ++u) {
      if (of.symbol(u) < 0) continue;
      ErrSum phi;
      for (std::int64_t k = 0; k < bumps; ++k) {
        phi.add(of.component(0, k) *
                bump(of.component(1, k), kappa[std::size_t(k)] - Err(double(u + 1))));
      }
      const Err total = phi.total();
      bounds[Out::kPhi].as<double>()[std::size_t(of.row * length + u)] = total.error;
      if (of.symbol(u) < of.symbols) w[std::size_t(of.symbol(u))].add(total);
    }
    for (std::int64_t c = 0; c < of.symbols; ++c) {
      bounds[Out::kW].as<double>()[std::size_t(of.row * of.symbols + c)] =
          w[std::size_t(c)].total().error;
    }
  });
}

// The gradient of phi_u.
Err phi_gradient(const WindowRow& of, std::int64_t u) {
  using In = AttentionWindowInput;
  const std::int32_t symbol = of.symbol(u);
  if (symbol < 0 || symbol >= of.symbols) return {};
  Err g;
  if (of.n.has(In::kDw)) g = Err(of.n.in(In::kDw)[std::size_t(of.row * of.symbols + symbol)]);
  if (!of.n.has(In::kDphi)) return g;
  return g + Err(of.n.in(In::kDphi)[std::size_t(of.row * of.sizes.length + u)]);
}

void attention_window_backward(const ComparedNode& n, Bounds& bounds) {
  using In = AttentionWindowInput;
  using Out = AttentionWindowGradient;
  for_each_window(n, [&](const WindowRow& of) {
    const auto& [rows, bumps, length] = of.sizes;
    for (std::int64_t k = 0; k < bumps; ++k) {
      const Err alpha = of.component(0, k), beta = of.component(1, k);
      ErrSum plain, first, second;
      for (std::int64_t u = 0; u < length; ++u) {
        const Err d = Err(of.kappa(k)) - Err(double(u + 1));
        const Err e = phi_gradient(of, u) * bump(beta, d);
        plain.add(e);
        first.add(e * d);
        second.add(e * d * d);
      }
      const auto place = std::size_t(of.row * bumps + k);
      const Err direct(n.has(In::kDkappa) ? n.in(In::kDkappa)[place] : 0);
      const Err dbefore = direct - Err(2) * alpha * beta * first.total();
      double* const dcomponents =
          bounds[Out::kDcomponents].as<double>().data() + 3 * of.row * bumps + k;
      dcomponents[0] = (alpha * plain.total()).error;
      dcomponents[bumps] = (alpha * beta * second.total()).error;
      dcomponents[2 * bumps] = (of.component(2, k) * dbefore).error;
      bounds[Out::kDbefore].as<double>()[place] = dbefore.error;
    }
  });
}

// One filter of an image along an axis. What p says of it is computed in double and rounded once.
struct FilterRow {
  FilterAxis axis;
  double variance, stride, mu;
  Err place, sharpness;

  FilterRow(const ComparedNode& n, bool is_x, std::int64_t row, std::int64_t i)
      : axis(filter_axis(n.attrs<FilterBankAttrs>(), is_x)) {
    using Parameter = FilterParameter;
    const double* p = n.in(FilterBankInput::kP).data() + row * Parameter::kCount;
    const double offset = filter_offset(n.attrs<FilterBankAttrs>().filters, i);
    variance = std::exp(p[Parameter::kLogVariance]);
    stride = axis.per_stride * std::exp(p[Parameter::kLogStride]);
    mu = axis.per_component * (p[is_x ? Parameter::kX : Parameter::kY] + 1) + offset * stride -
         axis.first;
    place = constant(mu);
    sharpness = constant(1 / (2 * variance));
  }
  Err distance(std::int64_t a) const { return Err(double(a)) - place; }
  Err kernel(std::int64_t a) const {
    const Err e = distance(a), argument = sharpness * e * e;
    return exponential(Err(-argument.value, argument.error));
  }
};

// Runs rule(row, i, filter, place of its first pixel) on every filter of an axis.
template <class Rule>
void for_each_filter(const ComparedNode& n, bool is_x, const Rule& rule) {
  const std::int64_t filters = n.attrs<FilterBankAttrs>().filters;
  const std::int64_t rows = n.input(FilterBankInput::kP).shape()[0];
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < filters; ++i) {
      const FilterRow filter(n, is_x, row, i);
      rule(row, i, filter, (row * filters + i) * filter.axis.size);
    }
  }
}

void filter_bank(const ComparedNode& n, Bounds& bounds) {
  for (const bool is_x : {true, false}) {
    Tensor& bound = bounds[is_x ? FilterBankOutput::kFx : FilterBankOutput::kFy];
    for_each_filter(n, is_x, [&](std::int64_t, std::int64_t, const FilterRow& of, std::int64_t at) {
      ErrSum sum;
      for (std::int64_t a = 0; a < of.axis.size; ++a) sum.add(of.kernel(a));
      const Err z = sum.total() + constant(of.axis.least);
      const Err factor = (Err(1) / z).rounded();
      for (std::int64_t a = 0; a < of.axis.size; ++a) {
        bound.as<double>()[std::size_t(at + a)] = (of.kernel(a) * factor).error;
      }
    });
  }
}

void filter_bank_backward(const ComparedNode& n, Bounds& bounds) {
  using In = FilterBankInput;
  using Parameter = FilterParameter;
  const std::int64_t filters = n.attrs<FilterBankAttrs>().filters;
  double* const dp = bounds[0].as<double>().data();
  for (const bool is_x : {true, false}) {
    if (!n.has(is_x ? In::kDfx : In::kDfy)) continue;
    const double* const f = n.in(is_x ? In::kFx : In::kFy).data();
    const double* const df = n.in(is_x ? In::kDfx : In::kDfy).data();
    for_each_filter(
        n, is_x, [&](std::int64_t row, std::int64_t i, const FilterRow& of, std::int64_t at) {
          ErrSum dot, first, second;
          for (std::int64_t a = at; a < at + of.axis.size; ++a) dot.add(Err(f[a]) * Err(df[a]));
          for (std::int64_t a = 0; a < of.axis.size; ++a) {
            const Err t = Err(f[at + a]) * (Err(df[at + a]) - dot.total()), te = t * of.distance(a);
            first.add(te);
            second.add(te * of.distance(a));
          }
          const Err dmu = first.total() / Err(of.variance);
          double* const d = dp + row * Parameter::kCount;
          d[is_x ? Parameter::kX : Parameter::kY] += of.axis.per_component * dmu.rounded().error;
          d[Parameter::kLogVariance] += (second.total() / Err(2 * of.variance)).rounded().error;
          d[Parameter::kLogStride] +=
              of.stride * std::abs(filter_offset(filters, i)) * dmu.rounded().error;
        });
  }
  // The sums over filters and axes.
  for (std::size_t e = 0; e < std::size_t(bounds[0].elements()); ++e) {
    dp[e] += sum_error(2 * filters) * std::abs(n.out(0)[e]);
  }
}

}  // namespace

void add_drawing_rules(BoundRules& rules) {
  rules["attention_window"] = attention_window;
  rules["attention_window_backward"] = attention_window_backward;
  rules["filter_bank"] = filter_bank;
  rules["filter_bank_backward"] = filter_bank_backward;
}

}  // namespace keel::compare
