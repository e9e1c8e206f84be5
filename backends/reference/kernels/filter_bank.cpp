// The filters of DRAW's attention.
#include "src/ops/filter_bank.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

using In = FilterBankInput;
using Parameter = FilterParameter;

// The filters along one axis of one image, as p has them.
struct Filters {
  FilterAxis axis;
  std::int64_t count;
  double centre, stride, variance;

  Filters(const FilterBankAttrs& attrs, bool is_x, const double* p)
      : axis(filter_axis(attrs, is_x)),
        count(attrs.filters),
        centre(axis.per_component * (p[is_x ? Parameter::kX : Parameter::kY] + 1)),
        stride(axis.per_stride * std::exp(p[Parameter::kLogStride])),
        variance(std::exp(p[Parameter::kLogVariance])) {}

  // How far pixel a is from filter i.
  double distance(std::int64_t i, std::int64_t a) const {
    return double(a) + axis.first - (centre + filter_offset(count, i) * stride);
  }
};

// F_i = K_i / Z_i;  f (count, size)
void fill_bank(const Filters& filters, double* f) {
  for (std::int64_t i = 0; i < filters.count; ++i) {
    double* const row = f + i * filters.axis.size;
    double z = filters.axis.least;
    for (std::int64_t a = 0; a < filters.axis.size; ++a) {
      const double e = filters.distance(i, a);
      z += row[a] = std::exp(-e * e / (2 * filters.variance));
    }
    for (std::int64_t a = 0; a < filters.axis.size; ++a) row[a] /= z;
  }
}

// Adds the gradient of p that comes through one axis.
void add_gradient(const Filters& filters, bool is_x, const double* f, const double* df,
                  double* dp) {
  for (std::int64_t i = 0; i < filters.count; ++i) {
    const double *const row = f + i * filters.axis.size, *const drow = df + i * filters.axis.size;
    double dot = 0, dmu = 0;
    for (std::int64_t a = 0; a < filters.axis.size; ++a) dot += drow[a] * row[a];
    for (std::int64_t a = 0; a < filters.axis.size; ++a) {
      const double e = filters.distance(i, a), t = row[a] * (drow[a] - dot);
      dmu += t * e / filters.variance;
      dp[Parameter::kLogVariance] += t * e * e / (2 * filters.variance);
    }
    dp[is_x ? Parameter::kX : Parameter::kY] += filters.axis.per_component * dmu;
    dp[Parameter::kLogStride] += filters.stride * dmu * filter_offset(filters.count, i);
  }
}

void forward(const Binding& b, const FilterBankAttrs& attrs) {
  const double* p = b.inputs[In::kP].as<double>();
  const std::int64_t n = b.inputs[In::kP].type.shape[0];
  for (const bool is_x : {true, false}) {
    const TensorRef& out = b.outputs[is_x ? FilterBankOutput::kFx : FilterBankOutput::kFy];
    for (std::int64_t row = 0; row < n; ++row) {
      const Filters filters(attrs, is_x, p + row * Parameter::kCount);
      fill_bank(filters, out.as<double>() + row * filters.count * filters.axis.size);
    }
  }
}

void backward(const Binding& b, const FilterBankAttrs& attrs) {
  const double* p = b.inputs[In::kP].as<double>();
  double* dp = b.outputs[0].as<double>();
  const std::int64_t n = b.inputs[In::kP].type.shape[0];
  vector(b.outputs[0]).setZero();
  for (const bool is_x : {true, false}) {
    const TensorRef &f = b.inputs[is_x ? In::kFx : In::kFy],
                    &df = b.inputs[is_x ? In::kDfx : In::kDfy];
    if (!df) continue;
    for (std::int64_t row = 0; row < n; ++row) {
      const Filters filters(attrs, is_x, p + row * Parameter::kCount);
      const std::int64_t first = row * filters.count * filters.axis.size;
      add_gradient(filters, is_x, f.as<double>() + first, df.as<double>() + first,
                   dp + row * Parameter::kCount);
    }
  }
}

}  // namespace

Prepared prepare_filter_bank(const NodeContext& context) {
  const auto attrs = context.attrs<FilterBankAttrs>();
  return kernel_of([=](const Binding& b) { forward(b, attrs); });
}

Prepared prepare_filter_bank_backward(const NodeContext& context) {
  const auto attrs = context.attrs<FilterBankAttrs>();
  return kernel_of([=](const Binding& b) { backward(b, attrs); });
}

}  // namespace keel::reference
