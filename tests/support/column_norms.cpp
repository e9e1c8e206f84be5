#include "tests/support/column_norms.h"

#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/column_moments.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/unified_norm.h"
#include "src/ops/norm_noise.h"
#include "src/ops/reduce.h"

namespace keel::test {
namespace {

Value moments(Graph& g, const ColumnOperands& o, bool given) {
  return given ? ops::column_moments(g, o.x, o.mask) : Value{};
}
Value squares(Graph& g, const ColumnOperands& o, bool given, bool all_rows = false) {
  return given ? ops::column_squares(g, o.x, o.mask, {all_rows}) : Value{};
}

ColumnNorm batch_norm(const std::string& name, const BatchNormAttrs& attrs) {
  return {name,
          [attrs](Graph& g, const ColumnOperands& o, bool given) {
            return ops::batch_norm(g, o.x, o.affine,
                                   {o.first, o.second, o.mask, moments(g, o, given)}, attrs);
          },
          true};
}

// Samples are rows of 1 position; the noise follows the batch norm.
ColumnNorm noisy_batch_norm() {
  return {"noisy batch norm",
          [](Graph& g, const ColumnOperands& o, bool given) {
            const Value y = ops::batch_norm(g, o.x, o.affine,
                                            {o.first, o.second, o.mask, moments(g, o, given)}, {});
            return ops::norm_noise(g, y, {{o.step, o.step}, o.mask}, {.seed = 3});
          },
          true};
}

ColumnNorm batch_renorm(const std::string& name, const BatchRenormAttrs& attrs) {
  return {name,
          [attrs](Graph& g, const ColumnOperands& o, bool given) {
            return ops::batch_renorm(
                g, o.x, o.affine, {o.first, o.second, o.step, o.mask, moments(g, o, given)}, attrs);
          },
          true, 9};
}

ColumnNorm pn_v() {
  return {"pn_v",
          [](Graph& g, const ColumnOperands& o, bool given) {
            return ops::pn_v(g, o.x, o.affine, {o.first, o.mask, squares(g, o, given)});
          },
          false};
}

ColumnNorm mabn(const std::string& name, const MabnAttrs& attrs) {
  return {name,
          [attrs](Graph& g, const ColumnOperands& o, bool given) {
            return ops::mabn(g, o.x, o.affine,
                             {o.ring, o.other_ring, o.first, o.step, o.mask, squares(g, o, given)},
                             attrs);
          },
          false, 9};
}

ColumnNorm unified_norm(const std::string& name, const UnifiedNormAttrs& attrs) {
  return {name,
          [attrs](Graph& g, const ColumnOperands& o, bool given) {
            return ops::unified_norm(
                g, o.x, o.affine,
                {o.ring, o.other_ring, o.first, o.second, o.step, o.mask, squares(g, o, given)},
                attrs);
          },
          false, 9};
}

ColumnNorm power_norm(const std::string& name, const PowerNormAttrs& attrs) {
  return {
      name,
      [attrs](Graph& g, const ColumnOperands& o, bool given) {
        const Value of = squares(g, o, given, attrs.pad_stats);
        return ops::power_norm(g, o.x, o.affine, {o.first, o.second, o.step, o.mask, of}, attrs);
      },
      false, 5};
}

Tensor floats(const Shape& shape, std::uint32_t stream, double mean, double deviation) {
  return random_normal(shape, stream, mean, deviation).to(DType::kF32);
}
Tensor positive(const Shape& shape, std::uint32_t stream) {
  Tensor t = random_normal(shape, stream, 0, 1);
  for (double& v : t.as<double>()) v = 0.5 + std::abs(v);
  return t.to(DType::kF32);
}

void mark(Graph& g, const std::string& name, Value v) {
  if (v.valid() && g.shape(v).elements() > 0) g.mark_output(name, v);
}

}  // namespace

const std::vector<ColumnNorm>& column_norms() {
  static const std::vector<ColumnNorm> norms{
      batch_norm("batch_norm", {}),
      batch_norm("unbiased batch_norm", {.unbiased = true, .running_unbiased = true}),
      batch_norm("padded batch_norm", {.padding = ColumnPadding::kPnCode}),
      noisy_batch_norm(),
      batch_renorm("batch_renorm", {.r_max = 1.2, .d_max = 0.3}),
      pn_v(),
      mabn("mabn", {.clip = 1.1, .m = 4, .warmup = 0, .clip_after = 0}),
      mabn("mabn in its warm-up", {.m = 4, .warmup = 100}),
      unified_norm("unified_norm", {.warmup = 0, .clip_after = 0, .filter = false}),
      unified_norm("unified_norm of an outlier", {.warmup = 0, .clip_after = 0}),
      unified_norm("unified_norm in its warm-up", {}),
      power_norm("power_norm", {}),
      power_norm("power_norm in its warm-up", {.warmup = 100}),
      power_norm("power_norm of the paper", {.mode = PowerNormMode::kPaper, .warmup = 100}),
      power_norm("padded power_norm", {.pad_stats = true}),
      batch_norm("batch_norm with penalties", {.mean_penalty = 0.7, .deviation_penalty = 0.4}),
      batch_norm("padded batch_norm with penalties",
                 {.padding = ColumnPadding::kPnCode, .mean_penalty = 7})};
  return norms;
}

ColumnBatch column_batch(const Shape& shape, ColumnMask mask) {
  ColumnBatch batch{floats(shape, 1, 3, 2), floats(shape, 2, 0.5, 1), {}};
  if (mask == ColumnMask::kNone) return batch;
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    const bool is_kept = row % 3 != 1 && row != 2;
    batch.mask.push_back(is_kept && mask == ColumnMask::kSome ? 1 : 0);
  }
  return batch;
}

ColumnOperands column_operands(Graph& g, Feeds& feeds, const ColumnNorm& norm,
                               const ColumnBatch& batch) {
  const auto feed = [&](const std::string& name, const Tensor& value) {
    feeds[name] = value.clone();
    return g.input(name, value.type());
  };
  const std::int64_t channels = batch.x.shape()[1], rows = std::ssize(batch.mask);
  ColumnOperands o;
  o.x = feed("x", batch.x);
  o.affine = {feed("gain", floats({channels}, 3, 1, 0.3)),
              feed("bias", floats({channels}, 4, 0, 1))};
  o.first = feed("first", positive({channels}, 5));
  o.second = feed("second", positive({channels}, 6));
  o.ring = feed("ring", positive({4, channels}, 7));
  o.other_ring = feed("other_ring", floats({4, channels}, 8, 0, 0.1));
  o.step = feed("step", Tensor::of<std::int32_t>({}, {norm.step}));
  if (rows > 0) o.mask = feed("mask", Tensor::of<std::uint8_t>({rows}, batch.mask));
  return o;
}

Results run_column_norm(Backend& backend, const ColumnNorm& norm, const ColumnBatch& batch,
                        bool given) {
  Graph g;
  Feeds feeds;
  const ColumnOperands o = column_operands(g, feeds, norm, batch);
  const Value y = norm.build(g, o, given);
  feeds["dy"] = batch.dy.clone();
  const Value dy = g.input("dy", batch.dy.type());
  const Value loss = ops::sum(g, ops::mul(g, y, dy));
  const std::vector<Value> wrt{o.x, o.affine.gain, o.affine.bias};
  const Gradients gradients = differentiate(g, loss, wrt);
  for (int port = 0; port < int(g.node(y).outputs.size()); ++port) {
    mark(g, fmt::format("y{}", port), y.at(port));
  }
  for (std::size_t i = 0; i < wrt.size(); ++i) mark(g, fmt::format("d{}", i), gradients.of[i]);
  for (const keel::Update& update : gradients.states) {
    mark(g, g.node(update.leaf).name + "'", update.next);
  }
  // Noise has the statistics and the running ones in a node of its own.
  if (const Node& last = g.node(y); last.op == &kNormNoise) {
    for (int port = 1; port < int(g.node(last.inputs[0]).outputs.size()); ++port) {
      mark(g, fmt::format("y{}", port), last.inputs[0].at(port));
    }
  }
  return run_graph(backend, g, feeds);
}

}  // namespace keel::test
