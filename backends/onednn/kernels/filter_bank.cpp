// The filters of DRAW's attention, one filter at a time, along the pixels of its axis.
#include "src/ops/filter_bank.h"

#include <algorithm>
#include <cmath>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_FILTER_BANK_FILTER  // this file is compiled once per instruction set
#define KEEL_FILTER_BANK_FILTER
namespace keel::onednn {
namespace {

// A filter: where it stands, the place of the first pixel being 0, and 1 / (2 sigma^2).
struct OneFilter {
  float mu, sharpness, least;
};

// Sums over the pixels of T e and T e^2.
struct FilterSums {
  double e = 0, e2 = 0;
};

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/filter_bank.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/math.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE Floats pixel_distance(const OneFilter& filter, std::size_t a) {
  return hn::Sub(hn::Iota(F(), float(a)), splat(filter.mu));
}

// f = K / Z
void fill_filter(const OneFilter& filter, float* f, std::size_t size) {
  const double sum = sum_of(size, [&](auto part, std::size_t a) HWY_ATTR {
    const Floats e = pixel_distance(filter, a);
    const Floats k = exp(hn::Neg(hn::Mul(hn::Mul(splat(filter.sharpness), e), e)));
    part.store(k, f + a);
    return k;
  });
  const Floats factor = splat(float(1 / (sum + filter.least)));
  for_lanes(size, [&](auto part, std::size_t a)
                      HWY_ATTR { part.store(hn::Mul(part.load(f + a), factor), f + a); });
}

void sum_filter(const OneFilter& filter, const float* f, const float* df, std::size_t size,
                FilterSums* sums) {
  const double dot = sum_of(size, [&](auto part, std::size_t a) HWY_ATTR {
    return hn::Mul(part.load(df + a), part.load(f + a));
  });
  const Floats shift = splat(float(dot));
  DoubleSum first, second;
  for_lanes(size, [&](auto part, std::size_t a) HWY_ATTR {
    const Floats e = pixel_distance(filter, a);
    const Floats t = hn::Mul(part.load(f + a), hn::Sub(part.load(df + a), shift));
    const Floats te = part.only(hn::Mul(t, e));
    first.add(te);
    second.add(hn::Mul(te, e));
  });
  *sums = {first.total(), second.total()};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(fill_filter);
HWY_EXPORT(sum_filter);

namespace {

using In = FilterBankInput;
using Parameter = FilterParameter;

// The filters along one axis of one image; what few numbers they have is computed in double.
struct Filters {
  FilterAxis axis;
  std::int64_t count;
  double centre, stride, variance;

  Filters(const FilterBankAttrs& attrs, bool is_x, const float* p)
      : axis(filter_axis(attrs, is_x)),
        count(attrs.filters),
        centre(axis.per_component * (double(p[is_x ? Parameter::kX : Parameter::kY]) + 1)),
        stride(axis.per_stride * std::exp(double(p[Parameter::kLogStride]))),
        variance(std::exp(double(p[Parameter::kLogVariance]))) {}

  OneFilter filter(std::int64_t i) const {
    return {float(centre + filter_offset(count, i) * stride - axis.first),
            float(1 / (2 * variance)), float(axis.least)};
  }
};

struct FilterPlan {
  FilterBankAttrs attrs;
  std::int64_t n;

  static FilterPlan of(const NodeContext& context) {
    return {context.attrs<FilterBankAttrs>(), context.input(In::kP).shape[0]};
  }
  // Images of a block.
  std::int64_t block() const {
    return kBlockElements / (attrs.filters * (attrs.rows + attrs.columns)) + 1;
  }
};

void forward(const Binding& b, const FilterPlan& plan) {
  const float* p = b.inputs[In::kP].as<float>();
  parallel_range(plan.n, plan.block(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (const bool is_x : {true, false}) {
        const Filters filters(plan.attrs, is_x, p + row * Parameter::kCount);
        const TensorRef& out = b.outputs[is_x ? FilterBankOutput::kFx : FilterBankOutput::kFy];
        for (std::int64_t i = 0; i < filters.count; ++i) {
          float* const f = out.as<float>() + (row * filters.count + i) * filters.axis.size;
          HWY_DYNAMIC_DISPATCH(fill_filter)(filters.filter(i), f, std::size_t(filters.axis.size));
        }
      }
    }
  });
}

// Adds the gradient of p that comes through one axis of one image.
void add_gradient(const Binding& b, const Filters& filters, bool is_x, std::int64_t row,
                  double* dp) {
  const TensorRef &f = b.inputs[is_x ? In::kFx : In::kFy],
                  &df = b.inputs[is_x ? In::kDfx : In::kDfy];
  if (!df) return;
  for (std::int64_t i = 0; i < filters.count; ++i) {
    const std::int64_t first = (row * filters.count + i) * filters.axis.size;
    FilterSums sums;
    HWY_DYNAMIC_DISPATCH(sum_filter)
    (filters.filter(i), f.as<float>() + first, df.as<float>() + first,
     std::size_t(filters.axis.size), &sums);
    const double dmu = sums.e / filters.variance;
    dp[is_x ? Parameter::kX : Parameter::kY] += filters.axis.per_component * dmu;
    dp[Parameter::kLogVariance] += sums.e2 / (2 * filters.variance);
    dp[Parameter::kLogStride] += filters.stride * dmu * filter_offset(filters.count, i);
  }
}

void backward(const Binding& b, const FilterPlan& plan) {
  const float* p = b.inputs[In::kP].as<float>();
  parallel_range(plan.n, plan.block(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      double dp[Parameter::kCount] = {};
      for (const bool is_x : {true, false}) {
        const Filters filters(plan.attrs, is_x, p + row * Parameter::kCount);
        add_gradient(b, filters, is_x, row, dp);
      }
      std::copy_n(dp, int(Parameter::kCount), b.outputs[0].as<float>() + row * Parameter::kCount);
    }
  });
}

}  // namespace

Prepared prepare_filter_bank(const NodeContext& context) {
  return kernel_of([plan = FilterPlan::of(context)](const Binding& b) { forward(b, plan); });
}

Prepared prepare_filter_bank_backward(const NodeContext& context) {
  return kernel_of([plan = FilterPlan::of(context)](const Binding& b) { backward(b, plan); });
}

}  // namespace keel::onednn
#endif
