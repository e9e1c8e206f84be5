// The soft window of handwriting synthesis, one bump at a time, along the symbols of a row.
#include "src/ops/attention_window.h"

#include <algorithm>
#include <cmath>

#include "backends/onednn/blocks.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_ATTENTION_WINDOW_BUMP  // this file is compiled once per instruction set
#define KEEL_ATTENTION_WINDOW_BUMP
namespace keel::onednn {
namespace {

struct Bump {
  float alpha, beta, kappa;
};

// Sums over the symbols of g E, g E d and g E d^2.
struct BumpSums {
  double plain = 0, d = 0, d2 = 0;
};

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/attention_window.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/math.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// kappa - u for the symbols from place i on, whose u begins at i + 1.
HWY_INLINE Floats distance(float kappa, std::size_t i) {
  return hn::Sub(splat(kappa), hn::Iota(F(), float(i + 1)));
}

HWY_INLINE Floats of_bump(const Bump& bump, Floats d) {
  return exp(hn::Neg(hn::Mul(hn::Mul(splat(bump.beta), d), d)));
}

// phi += alpha exp(-beta (kappa - u)^2)
void add_bump(const Bump& bump, float* phi, std::size_t length) {
  for_lanes(length, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats e = of_bump(bump, distance(bump.kappa, i));
    part.store(hn::MulAdd(splat(bump.alpha), e, part.load(phi + i)), phi + i);
  });
}

// g is the gradient of phi (length).
void sum_bump(const Bump& bump, const float* g, std::size_t length, BumpSums* sums) {
  DoubleSum plain, first, second;
  for_lanes(length, [&](auto part, std::size_t i) HWY_ATTR {
    const Floats d = distance(bump.kappa, i);
    const Floats e = part.only(hn::Mul(part.load(g + i), of_bump(bump, d))), ed = hn::Mul(e, d);
    plain.add(e);
    first.add(ed);
    second.add(hn::Mul(ed, d));
  });
  *sums = {plain.total(), first.total(), second.total()};
}

// e[i] = exp(x[i])
void exponentials(const float* x, float* e, std::size_t n) {
  for_lanes(n,
            [&](auto part, std::size_t i) HWY_ATTR { part.store(exp(part.load(x + i)), e + i); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(add_bump);
HWY_EXPORT(sum_bump);
HWY_EXPORT(exponentials);

namespace {

using In = AttentionWindowInput;

struct WindowPlan {
  AttentionWindowSizes sizes;
  std::int64_t symbols;

  static WindowPlan of(const NodeContext& context) {
    return {
        attention_window_sizes(context.input(In::kBefore).shape, context.input(In::kText).shape),
        context.attrs<AttentionWindowAttrs>().symbols};
  }
  std::int64_t block() const { return kBlockElements / (sizes.bumps * sizes.length) + 1; }
  // exp of the components of all rows.
  std::int64_t components() const { return 3 * sizes.bumps; }
};

void forward_row(const Binding& b, const WindowPlan& plan, std::int64_t row, float* e) {
  using Out = AttentionWindowOutput;
  const auto& [rows, bumps, length] = plan.sizes;
  const float* before = b.inputs[In::kBefore].as<float>() + row * bumps;
  const std::int32_t* text = b.inputs[In::kText].as<std::int32_t>() + row * length;
  float* w = b.outputs[Out::kW].as<float>() + row * plan.symbols;
  float* kappa = b.outputs[Out::kKappa].as<float>() + row * bumps;
  float* phi = b.outputs[Out::kPhi].as<float>() + row * length;
  HWY_DYNAMIC_DISPATCH(exponentials)
  (b.inputs[In::kComponents].as<float>() + row * plan.components(), e,
   std::size_t(plan.components()));
  std::fill_n(phi, length, 0.0f);
  std::fill_n(w, plan.symbols, 0.0f);
  for (std::int64_t k = 0; k < bumps; ++k) {
    kappa[k] = before[k] + e[2 * bumps + k];
    HWY_DYNAMIC_DISPATCH(add_bump)({e[k], e[bumps + k], kappa[k]}, phi, std::size_t(length));
  }
  for (std::int64_t u = 0; u < length; ++u) {
    if (text[u] < 0) {
      phi[u] = 0;
    } else if (text[u] >= plan.symbols) {
      std::fill_n(w, plan.symbols, NAN);
    } else {
      w[text[u]] += phi[u];
    }
  }
}

// The gradient of phi_u: dw of its symbol and dphi.
void phi_gradient(const Binding& b, const WindowPlan& plan, std::int64_t row, float* g) {
  const std::int64_t length = plan.sizes.length;
  const std::int32_t* text = b.inputs[In::kText].as<std::int32_t>() + row * length;
  const TensorRef &dw = b.inputs[In::kDw], &dphi = b.inputs[In::kDphi];
  for (std::int64_t u = 0; u < length; ++u) {
    g[u] = text[u] >= plan.symbols ? NAN : 0;
    if (text[u] < 0 || text[u] >= plan.symbols) continue;
    if (dw) g[u] += dw.as<float>()[row * plan.symbols + text[u]];
    if (dphi) g[u] += dphi.as<float>()[row * length + u];
  }
}

// e (3 bumps) and g (length) are room for the row.
void backward_row(const Binding& b, const WindowPlan& plan, std::int64_t row, float* e) {
  using Out = AttentionWindowGradient;
  const auto& [rows, bumps, length] = plan.sizes;
  float* const g = e + plan.components();
  const float* kappa = b.inputs[In::kKappa].as<float>() + row * bumps;
  const TensorRef& dkappa = b.inputs[In::kDkappa];
  float* dcomponents = b.outputs[Out::kDcomponents].as<float>() + row * plan.components();
  float* dbefore = b.outputs[Out::kDbefore].as<float>() + row * bumps;
  HWY_DYNAMIC_DISPATCH(exponentials)
  (b.inputs[In::kComponents].as<float>() + row * plan.components(), e,
   std::size_t(plan.components()));
  phi_gradient(b, plan, row, g);
  for (std::int64_t k = 0; k < bumps; ++k) {
    const double alpha = e[k], beta = e[bumps + k];
    BumpSums sums;
    HWY_DYNAMIC_DISPATCH(sum_bump)
    ({e[k], e[bumps + k], kappa[k]}, g, std::size_t(length), &sums);
    const double direct = dkappa ? dkappa.as<float>()[row * bumps + k] : 0;
    const double dk = direct - 2 * alpha * beta * sums.d;
    dcomponents[k] = float(alpha * sums.plain);
    dcomponents[bumps + k] = float(-alpha * beta * sums.d2);
    dcomponents[2 * bumps + k] = float(e[2 * bumps + k] * dk);
    dbefore[k] = float(dk);
  }
}

// Runs body(row, room) on every row, `room` floats being the row's own.
template <class Body>
void for_each_row(const Binding& b, const WindowPlan& plan, std::int64_t room, const Body& body) {
  float* const all = static_cast<float*>(b.workspace);
  parallel_range(plan.sizes.rows, plan.block(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row, all + row * room);
  });
}

}  // namespace

Prepared prepare_attention_window(const NodeContext& context) {
  const WindowPlan plan = WindowPlan::of(context);
  const std::int64_t room = plan.components();
  return kernel_of(
      [plan, room](const Binding& b) {
        for_each_row(b, plan, room,
                     [&](std::int64_t row, float* e) { forward_row(b, plan, row, e); });
      },
      plan.sizes.rows * room * std::int64_t(sizeof(float)));
}

Prepared prepare_attention_window_backward(const NodeContext& context) {
  const WindowPlan plan = WindowPlan::of(context);
  const std::int64_t room = plan.components() + plan.sizes.length;
  return kernel_of(
      [plan, room](const Binding& b) {
        for_each_row(b, plan, room,
                     [&](std::int64_t row, float* e) { backward_row(b, plan, row, e); });
      },
      plan.sizes.rows * room * std::int64_t(sizeof(float)));
}

}  // namespace keel::onednn
#endif
