// Cross entropy of products with the rows of a table, one tile of classes after the other. When a
// further tile makes a row's largest logit grow, the row's sum is scaled down accordingly.
#include "src/ops/linear_cross_entropy.h"

#include <cmath>
#include <cstring>

#include "backends/onednn/kernels/bf16.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/linear_loss_plan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/linear_cross_entropy.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/linear_loss-inl.h"
#include "backends/onednn/simd/math.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

void pack_classes_of(const LinearLossWork& w, std::size_t task) {
  w.plan.is_narrow() ? pack_classes<BF16>(w, task) : pack_classes<float>(w, task);
}

// Adds exp(z) of n classes, which is 0 for logits of -infinity.
void take_exps(const float* z, std::size_t n, RowState& state) {
  const float of_tile = max_of(z, n);
  if (of_tile == -INFINITY) return;
  const float largest = of_tile > state.max || std::isnan(of_tile) ? of_tile : state.max;
  const Floats max = splat(largest);
  const double sum = sum_of(
      n, [&](auto part, std::size_t i) HWY_ATTR { return exp(hn::Sub(part.load(z + i), max)); });
  state.sum = state.sum * std::exp(double(state.max) - largest) + sum;
  state.max = largest;
}

void take_logits(const LinearLossWork& w, const float* z, std::int64_t hot, RowState& state) {
  const std::size_t n = w.tile.count;
  take_exps(z, n, state);
  if (w.smooths()) {
    state.of_logits +=
        sum_of(n, [&](auto part, std::size_t i) HWY_ATTR { return part.load(z + i); });
  }
  const std::int64_t place = hot - std::int64_t(w.tile.first);
  if (place >= 0 && place < std::int64_t(n)) state.hot = z[place];
}

void take_logits_of(const LinearLossWork& w, std::size_t block) {
  const RowSpan span(w, block);
  w.plan.is_narrow() ? fill_logits<BF16>(w, span) : fill_logits<float>(w, span);
  for (std::size_t r = span.first; r < span.first + span.count; ++r) {
    take_logits(w, w.z + r * kTileRow, w.hot[r], w.states[r]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(pack_classes_of);
HWY_EXPORT(take_logits_of);

void pack_tile(const LinearLossWork& w, std::size_t task) {
  HWY_DYNAMIC_DISPATCH(pack_classes_of)(w, task);
}
void take_rows(const LinearLossWork& w, std::size_t block) {
  HWY_DYNAMIC_DISPATCH(take_logits_of)(w, block);
}
void take_tile(const LinearLossWork& w) {
  run_tasks(blocks_of(w.tile.count, kWidestPanel), w, pack_tile);
  run_tasks(blocks_of(w.rows, w.plan.row_block()), w, take_rows);
}

double RowState::lse() const { return max == -INFINITY ? NAN : max + std::log(sum); }

void LossTotals::add(const LinearLossWork& w, const std::int32_t* rows, float* lse) {
  const double s = w.plan.attrs.label_smoothing;
  for (std::size_t r = 0; r < w.rows; ++r) {
    const RowState& state = w.states[r];
    lse[rows[r]] = float(state.lse());
    const double surprise = w.hot[r] < 0 ? NAN : state.lse() - state.hot;
    nll += surprise;
    sum += (1 - s) * surprise;
    if (s > 0) sum += s * (state.lse() - state.of_logits / double(w.part->classes()));
  }
}

namespace {

struct ForwardParts {
  PartRows rows;
  std::byte* x;  // of the rows of a cluster, one after the other
  WorkspaceParts parts;

  ForwardParts(LinearLossWork& w, void* workspace) : parts(workspace) {
    const LinearLossPlan& plan = w.plan;
    rows.rows = parts.take<std::int32_t>(plan.rows);
    rows.hot = parts.take<std::int32_t>(plan.rows);
    x = parts.take<std::byte>(plan.rows * plan.row_bytes());
    w.columns = parts.floats(panel_floats(plan.terms(plan.width), kTileClasses));
    w.z = parts.floats(plan.rows * kTileRow);
    w.states = parts.take<RowState>(plan.rows);
  }
};

void forward(const Binding& b, const LinearLossPlan& plan) {
  using In = LinearLossInput;
  using Out = LinearLossOutput;
  LinearLossWork w(plan);
  ForwardParts parts(w, b.workspace);
  float* const lse = b.outputs[Out::kLse].as<float>();
  std::fill_n(lse, plan.parts.size() * plan.rows, 0.0f);
  LossTotals totals;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    w.part = &plan.parts[p];
    parts.rows.list(plan, *w.part, b.inputs[In::kLabels].as<std::int32_t>());
    w.rows = parts.rows.count, w.hot = parts.rows.hot;
    if (w.rows == 0) continue;
    w.x = gather_rows(plan, parts.rows, b.inputs[In::kX].data, parts.x);
    std::fill_n(w.states, w.rows, RowState{});
    each_tile(w, b, [&] { take_tile(w); });
    totals.add(w, parts.rows.rows, lse + p * plan.rows);
  }
  *b.outputs[Out::kSum].as<float>() = float(totals.sum);
  *b.outputs[Out::kNll].as<float>() = float(totals.nll);
}

}  // namespace

const void* gather_rows(const LinearLossPlan& plan, const PartRows& rows, const void* x, void* to) {
  if (rows.count == plan.rows) return x;
  const std::size_t bytes = plan.row_bytes();
  const auto* const from = static_cast<const std::byte*>(x);
  for (std::size_t r = 0; r < rows.count; ++r) {
    std::memcpy(static_cast<std::byte*>(to) + r * bytes, from + std::size_t(rows.rows[r]) * bytes,
                bytes);
  }
  return to;
}

Prepared prepare_linear_cross_entropy(const NodeContext& context) {
  const LinearLossPlan plan(context);
  if (plan.is_refused()) return refuse_bf16_product(context);
  LinearLossWork counted(plan);
  return kernel_of([plan](const Binding& b) { forward(b, plan); },
                   ForwardParts(counted, nullptr).parts.bytes());
}

}  // namespace keel::onednn
#endif
