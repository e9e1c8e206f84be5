// linear_cross_entropy with its gradients at once. All logits of some rows are kept until the rows'
// log-sum-exp is known; they then become P. This saves the product that the backward would compute
// the logits with again, and gives the bits that it gives.
#include <algorithm>
#include <ranges>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/reduce_kernels.h"
#include "backends/onednn/linear_loss_plan.h"
#include "backends/onednn/threads.h"
#include "src/runtime/loss_step.h"

namespace keel::onednn {
namespace {

using In = LinearLossInput;
using Out = LinearLossOutput;
using Gradient = LinearLossGradient;

// Logits that are kept at a time, 16 MiB, unless one chunk of rows has more: a tile is packed for
// each such group of rows, and larger groups were no faster.
constexpr std::size_t kKeptLogits = std::size_t(1) << 22;
constexpr std::size_t kMostLogits = std::size_t(1) << 24;  // of a chunk, beyond which no step pays

std::size_t most_tiles(const LinearLossPlan& plan) {
  return std::ranges::max(plan.parts | std::views::transform(tiles_of));
}

// As many rows as the logits allow, in whole chunks: dT then adds up rows in the backward's order.
// 0: the logits of one chunk are too many.
std::size_t rows_at_a_time(const LinearLossPlan& plan) {
  const std::size_t of_chunk = most_tiles(plan) * kTileRow * kChunk;
  if (of_chunk > kMostLogits) return 0;
  return std::min(std::max(kKeptLogits / of_chunk, std::size_t(1)), plan.chunks()) * kChunk;
}

struct StepParts {
  PartRows rows;
  std::byte* x;
  float* dx;       // of the rows of a part
  float *z, *lse;  // of those that are taken together; z by tiles
  RowState* states;
  double *sums, *dbias;  // of the columns of a tile; of a part
  WorkspaceParts parts;

  StepParts(LinearLossWork& w, void* workspace) : parts(workspace) {
    const LinearLossPlan& plan = w.plan;
    const std::size_t together = rows_at_a_time(plan);
    rows.rows = parts.take<std::int32_t>(plan.rows);
    rows.hot = parts.take<std::int32_t>(plan.rows);
    x = parts.take<std::byte>(plan.rows * plan.row_bytes());
    dx = parts.floats(plan.rows * plan.width);
    z = parts.floats(most_tiles(plan) * together * kTileRow), lse = parts.floats(together);
    states = parts.take<RowState>(together);
    sums = parts.take<double>(kTileClasses);
    dbias = parts.take<double>(most_tiles(plan) * kTileClasses);
    w.columns = parts.floats(panel_floats(plan.width, kTileClasses));
    w.words = parts.floats(panel_floats(kTileClasses, plan.width));
    w.x_panels = parts.floats(together / kChunk * panel_floats(kChunk, plan.width));
  }
};

class Step {
 public:
  Step(const Binding& b, const LinearLossPlan& plan)
      : b_(b),
        gradients_(std::span(b.outputs).subspan(LinearLossStep::kFirstGradient)),
        w_(plan),
        parts_(w_, b.workspace) {}

  void run() {
    for (const TensorRef& gradient : gradients_) {
      if (gradient) std::fill_n(gradient.as<float>(), gradient.elements(), 0.0f);
    }
    const LinearLossPlan& plan = w_.plan;
    std::fill_n(lse(), plan.parts.size() * plan.rows, 0.0f);
    w_.gradient = *b_.inputs[LinearLossStep::kDsumInput].as<float>();
    w_.has_logits = true, w_.states = parts_.states;
    for (std::size_t p = 0; p < plan.parts.size(); ++p) run_part(p);
    *b_.outputs[Out::kSum].as<float>() = float(totals_.sum);
    *b_.outputs[Out::kNll].as<float>() = float(totals_.nll);
  }

 private:
  float* lse() const { return b_.outputs[Out::kLse].as<float>(); }

  void run_part(std::size_t p) {
    const LinearLossPlan& plan = w_.plan;
    w_.part = &plan.parts[p];
    parts_.rows.list(plan, *w_.part, b_.inputs[In::kLabels].as<std::int32_t>());
    const std::size_t count = parts_.rows.count, together = rows_at_a_time(plan);
    if (count == 0) return;
    const auto* const x =
        static_cast<const float*>(gather_rows(plan, parts_.rows, b_.inputs[In::kX].data, parts_.x));
    std::fill_n(parts_.dx, count * plan.width, 0.0f);
    std::fill_n(parts_.dbias, std::size_t(w_.part->classes()), 0.0);
    for (std::size_t row = 0; row < count; row += together) {
      w_.rows = std::min(together, count - row), w_.hot = parts_.rows.hot + row;
      w_.x = x + row * plan.width, w_.dx = parts_.dx + row * plan.width;
      w_.adds_rows = row > 0;
      take_losses(parts_.rows.rows + row, lse() + p * plan.rows);
      take_gradients(row + w_.rows == count);
    }
    w_.rows = count;
    scatter_rows(w_, parts_.rows.rows, parts_.dx, gradients_[Gradient::kDx].as<float>());
  }

  // Calls body() for every tile, with its place among the logits of the rows set.
  template <class Body>
  void each_kept_tile(const Body& body) {
    w_.z = parts_.z;
    each_tile(w_, b_, [&] {
      body();
      w_.z += w_.rows * kTileRow;
    });
  }

  // The logits of some rows, and their losses.
  void take_losses(const std::int32_t* rows, float* lse) {
    std::fill_n(w_.states, w_.rows, RowState{});
    each_kept_tile([&] { take_tile(w_); });
    totals_.add(w_, rows, lse);
    for (std::size_t r = 0; r < w_.rows; ++r) parts_.lse[r] = lse[rows[r]];
  }

  void take_gradients(bool are_last) {
    w_.lse = parts_.lse;
    run_tasks(blocks_of(w_.rows, kChunk), w_, pack_chunk);
    each_kept_tile([&] {
      place_gradients(w_, gradients_);
      differentiate_tile(w_);
      if (w_.tile.dbias != nullptr) add_bias_gradient(are_last);
    });
  }

  void add_bias_gradient(bool are_last) {
    reduce_columns(
        Reduction::kSum,
        {w_.z, std::int64_t(w_.rows), std::int64_t(w_.tile.count), std::int64_t(kTileRow)},
        parts_.sums);
    double* const total = parts_.dbias + w_.tile.first;
    for (std::size_t c = 0; c < w_.tile.count; ++c) total[c] += parts_.sums[c];
    if (are_last) std::copy_n(total, w_.tile.count, w_.tile.dbias);
  }

  const Binding& b_;
  std::span<const TensorRef> gradients_;
  LinearLossWork w_;
  StepParts parts_;
  LossTotals totals_;
};

}  // namespace

bool joins_loss(const NodeContext& context) {
  const LinearLossPlan plan(context);
  return !plan.is_narrow() && rows_at_a_time(plan) > 0;
}

Prepared prepare_linear_cross_entropy_step(const NodeContext& context) {
  if (!joins_loss(context)) {
    return one_after_the_other(prepare_linear_cross_entropy(context),
                               prepare_linear_cross_entropy_backward(context));
  }
  const LinearLossPlan plan(context);
  LinearLossWork counted(plan);
  return kernel_of([plan](const Binding& b) { Step(b, plan).run(); },
                   StepParts(counted, nullptr).parts.bytes());
}

}  // namespace keel::onednn
