// Cross entropy of products with the rows of a table, one tile of classes after the other. When a
// further tile makes a row's largest logit grow, the row's sum is scaled down accordingly.
#include <cmath>

#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/linear_loss.cuh"
#include "backends/cuda/kernels/reduction.cuh"

namespace keel::cuda {
namespace {

// The softmax of each row of the part so far, and the logit that its loss reads. After a maximum of
// -infinity no class has been possible so far, and the sum is NaN: the next tile does not read it.
struct RowStates {
  Global<double> sum, of_logits;
  Global<float> max, hot;
};
// The losses of every row in the parts so far.
struct RowLosses {
  Global<double> loss, nll;
};

__global__ void begin_part(LinearLoss of, RowStates states, Global<float> lse) {
  for (std::int64_t r = grid_thread(); r < of.rows; r += grid_threads()) {
    states.sum[r] = 0, states.of_logits[r] = 0, states.hot[r] = 0;
    states.max[r] = -INFINITY;
    lse[r] = 0;
  }
}

// A block takes the logits of one row.
__global__ void take_logits(LinearLoss of, RowStates states) {
  const std::int64_t r = blockIdx.x;
  const int thread = int(threadIdx.x);
  if (r >= of.row_count() || of.ignores(r)) return;
  float max = -INFINITY;
  double sum = 0, total = 0;
  for (std::int64_t c = thread; c < of.tile.count; c += kRowBlock) {
    max = Largest()(max, of.logit(r, c));
  }
  max = over_block<kRowBlock>(max, Largest());
  const float before = states.max[r], largest = Largest()(max, before);
  for (std::int64_t c = thread; c < of.tile.count; c += kRowBlock) {
    const float z = of.logit(r, c);
    sum += double(exponential(z - largest));
    total += double(z);
  }
  sum = over_block<kRowBlock>(sum, Add());
  total = over_block<kRowBlock>(total, Add());
  if (thread != 0) return;
  states.sum[r] = (before == -INFINITY ? 0 : states.sum[r] * exp(double(before) - largest)) + sum;
  states.of_logits[r] += total;
  states.max[r] = largest;
  const std::int64_t place = of.part.hot[r] - of.tile.first;
  if (place >= 0 && place < of.tile.count) states.hot[r] = of.logit(r, place);
}

__global__ void add_losses(LinearLoss of, RowStates states, RowLosses losses, Global<float> lse) {
  for (std::int64_t r = grid_thread(); r < of.row_count(); r += grid_threads()) {
    if (of.ignores(r)) continue;
    const std::int64_t row = of.part.rows[r];
    const double own = states.max[r] + log(states.sum[r]), s = of.smoothing;
    const double surprise = of.part.hot[r] < 0 ? NAN : own - states.hot[r];
    lse[row] = float(own);
    losses.nll[row] += surprise;
    losses.loss[row] += (1 - s) * surprise;
    if (s > 0) losses.loss[row] += s * (own - states.of_logits[r] / double(of.classes));
  }
}

__global__ void clear_losses(RowLosses losses) {
  for (std::int64_t r = grid_thread(); r < losses.loss.size(); r += grid_threads()) {
    losses.loss[r] = 0, losses.nll[r] = 0;
  }
}

struct ForwardWork {
  DeviceParts parts;
  LinearLoss work;
  RowStates states;
  RowLosses losses;
  Reduction all;
  Global<double> partial;

  ForwardWork(const LinearLossPlan& plan, const Binding* b)
      : parts(b), work(linear_loss_of(plan, b, parts)), all(reduction_of_all(plan.rows)) {
    states = {parts.take<double>(plan.rows), parts.take<double>(plan.rows),
              parts.take<float>(plan.rows), parts.take<float>(plan.rows)};
    losses = {parts.take<double>(plan.rows), parts.take<double>(plan.rows)};
    partial = parts.take<double>(partial_bytes<double>(all) / std::int64_t(sizeof(double)));
  }
};

void forward(const Binding& b, const LinearLossPlan& plan) {
  using Out = LinearLossOutput;
  ForwardWork w(plan, &b);
  const auto lse_of = [&](std::size_t p) {
    return Global<float>(b.outputs[Out::kLse].as<float>() + std::int64_t(p) * plan.rows, plan.rows);
  };
  launch(clear_losses, one_thread_each(plan.rows), w.losses);
  each_tile(
      b, plan, w.work,
      [&](std::size_t p, const LinearLoss& work) {
        launch(begin_part, one_thread_each(plan.rows), work, w.states, lse_of(p));
      },
      [&](const TilePlace& place, const LinearLoss& work) {
        launch(take_logits, {plan.rows, kRowBlock}, work, w.states);
        const bool is_last = work.tile.first + work.tile.count == work.classes;
        if (is_last) {
          launch(add_losses, one_thread_each(plan.rows), work, w.states, w.losses,
                 lse_of(place.part));
        }
      });
  reduce<Add>(w.all, Elements<double>{w.losses.loss}, w.partial.data(),
              StoreQuotient{output(b.outputs[Out::kSum])});
  reduce<Add>(w.all, Elements<double>{w.losses.nll}, w.partial.data(),
              StoreQuotient{output(b.outputs[Out::kNll])});
}

}  // namespace

Prepared prepare_linear_cross_entropy(const NodeContext& context) {
  LinearLossPlan plan(context);
  if (!plan.fits_cutoffs()) return refuse("takes at most 16 cut-offs");
  plan.plan_products(context, false);
  return kernel_of([plan](const Binding& b) { forward(b, plan); },
                   ForwardWork(plan, nullptr).parts.bytes());
}

}  // namespace keel::cuda
