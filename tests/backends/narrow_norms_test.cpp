// Norms that read x and dy in bf16 and store y and dx so: the numbers of float32, rounded once
// where they are stored.
#include <cmath>
#include <set>

#include "bench/norm_errors.h"
#include "src/autodiff/gradient.h"
#include "src/core/bf16.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/norm/ada_norm.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm/derf.h"
#include "src/ops/norm/detach_norm.h"
#include "src/ops/norm/dyt.h"
#include "src/ops/norm/group_norm.h"
#include "src/ops/norm/group_scaling.h"
#include "src/ops/norm/instance_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/norm_ops.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/scale_norm.h"
#include "src/ops/norm/seed_norm.h"
#include "src/ops/norm/unified_norm.h"
#include "src/ops/reduce.h"
#include "tests/backends/kernel_checks.h"
#include "tests/support/column_norms.h"
#include "tests/support/narrow_nodes.h"
#include "tests/support/thoroughness.h"

namespace keel::test::narrow_norms {
namespace {

// A norm of x: its operands are those of column_operands, and what it does not need it leaves.
struct NarrowNorm {
  std::string name;
  std::function<Value(Graph&, const ColumnOperands&)> build;
};

using Operands = ColumnOperands;

// A parameter of one number.
Value number(Graph& g, float value) { return g.constant(Tensor::of<float>({1}, {value})); }

// Norms of the rows of a matrix; gain and bias (width).
const std::vector<NarrowNorm>& row_norms() {
  static const std::vector<NarrowNorm> norms{
      {"layer_norm", [](Graph& g, const Operands& o) { return ops::layer_norm(g, o.x, o.affine); }},
      {"plain layer_norm",
       [](Graph& g, const Operands& o) { return ops::layer_norm(g, o.x, {}, {.eps = 1e-3}); }},
      {"rms_norm", [](Graph& g, const Operands& o) { return ops::rms_norm(g, o.x, o.affine); }},
      {"rms_norm without bias",
       [](Graph& g, const Operands& o) {
         return ops::rms_norm(g, o.x, {o.affine.gain, {}});
       }},
      {"ada_norm", [](Graph& g, const Operands& o) { return ops::ada_norm(g, o.x); }},
      {"exact ada_norm",
       [](Graph& g, const Operands& o) { return ops::ada_norm(g, o.x, {.detach = false}); }},
      {"detach_norm", [](Graph& g, const Operands& o) { return ops::detach_norm(g, o.x); }},
      {"detach_norm of the mean",
       [](Graph& g, const Operands& o) {
         return ops::detach_norm(g, o.x, {.detach_variance = false});
       }},
      {"detach_norm of the variance",
       [](Graph& g, const Operands& o) {
         return ops::detach_norm(g, o.x, {.detach_mean = false});
       }},
      {"scale_norm", [](Graph& g, const Operands& o) { return ops::scale_norm(g, o.x, {}); }},
      {"seed_norm",
       [](Graph& g, const Operands& o) {
         return ops::seed_norm(g, o.x, {o.affine.gain, o.affine.gain, o.affine.bias});
       }},
      {"dyt",
       [](Graph& g, const Operands& o) { return ops::dyt(g, o.x, o.affine, number(g, 0.75)); }},
      {"derf",
       [](Graph& g, const Operands& o) {
         return ops::derf(g, o.x, o.affine, {number(g, 0.75), number(g, -0.5)});
       }},
      {"group_scaling", [](Graph& g, const Operands& o) { return ops::group_scaling(g, o.x); }},
      {"group_norm",
       [](Graph& g, const Operands& o) { return ops::group_norm(g, o.x, o.affine, {}); }}};
  return norms;
}

// Norms of matrices whose columns are a multiple of four.
const std::vector<NarrowNorm>& grouped_norms() {
  static const std::vector<NarrowNorm> norms{
      {"group_scaling in groups",
       [](Graph& g, const Operands& o) { return ops::group_scaling(g, o.x, {.groups = 4}); }},
      {"group_norm in groups",
       [](Graph& g, const Operands& o) {
         return ops::group_norm(g, o.x, o.affine, {.groups = 4});
       }},
      {"scaled power_norm",
       [](Graph& g, const Operands& o) {
         return ops::power_norm(g, o.x, o.affine, {o.first, o.second, o.step, o.mask},
                                {.groups = 4});
       }},
      {"power_norm of whole scaled rows",
       [](Graph& g, const Operands& o) {
         return ops::power_norm(g, o.x, o.affine, {o.first, o.second, o.step, o.mask},
                                {.groups = 1});
       }},
      {"scaled power_norm in its warm-up",
       [](Graph& g, const Operands& o) {
         return ops::power_norm(g, o.x, o.affine, {o.first, o.second, o.step, o.mask},
                                {.warmup = 100, .pad_stats = true, .groups = 4});
       }},
      {"scaled power_norm in evaluation", [](Graph& g, const Operands& o) {
         return ops::power_norm(g, o.x, o.affine, {o.first, o.second, o.step, o.mask},
                                {.training = false, .groups = 2});
       }}};
  return norms;
}

// Norms of columns besides those of column_norms().
const std::vector<NarrowNorm>& evaluated_norms() {
  static const std::vector<NarrowNorm> norms{
      {"batch_norm",
       [](Graph& g, const Operands& o) {
         return ops::batch_norm(g, o.x, o.affine, {o.first, o.second, o.mask}, {.training = false});
       }},
      {"padded batch_norm",
       [](Graph& g, const Operands& o) {
         return ops::batch_norm(g, o.x, o.affine, {o.first, o.second, o.mask},
                                {.training = false, .padding = ColumnPadding::kPnCode});
       }},
      {"batch_renorm",
       [](Graph& g, const Operands& o) {
         return ops::batch_renorm(g, o.x, o.affine, {o.first, o.second, o.step, o.mask},
                                  {.training = false});
       }},
      {"pn_v",
       [](Graph& g, const Operands& o) {
         return ops::pn_v(g, o.x, o.affine, {o.first, o.mask}, {.training = false});
       }},
      {"mabn",
       [](Graph& g, const Operands& o) {
         return ops::mabn(g, o.x, o.affine, {o.ring, o.other_ring, o.first, o.step, o.mask},
                          {.m = 4, .training = false});
       }},
      {"unified_norm",
       [](Graph& g, const Operands& o) {
         return ops::unified_norm(g, o.x, o.affine,
                                  {o.ring, o.other_ring, o.first, o.second, o.step, o.mask},
                                  {.training = false});
       }},
      {"power_norm", [](Graph& g, const Operands& o) {
         return ops::power_norm(g, o.x, o.affine, {o.first, o.second, o.step, o.mask},
                                {.training = false});
       }}};
  return norms;
}

// Elements of every size that a norm meets: by rows, or by columns, some are far from 0, some so
// large or so small that their squares leave the range of a float.
ColumnBatch batch_of(const Shape& shape, ColumnMask mask, bool by_columns) {
  ColumnBatch batch = column_batch(shape, mask);
  const std::int64_t channels = shape[1], inner = shape.elements(2, shape.rank());
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const std::int64_t row = i / (channels * inner), column = i / inner % channels;
    float& x = batch.x.as<float>()[std::size_t(i)];
    switch ((by_columns ? column : row) % 5) {
      case 1:
        x += 100;
        break;
      case 2:
        x *= 1e30f;
        break;
      case 3:
        x *= 1e-30f;
        break;
      case 4:
        x = std::copysign(1.f, x);  // saturated
        break;
      default:
        break;
    }
  }
  return batch;
}

struct Compared {
  std::set<std::string_view> ops;

  void norm(const NarrowNorm& norm, const ColumnBatch& batch) {
    CAPTURE(norm.name);
    CAPTURE(batch.x.shape().text());
    Graph g;
    Feeds feeds;
    const ColumnOperands o = column_operands(g, feeds, {norm.name, {}, false, 5}, batch);
    const Value y = norm.build(g, o);
    feeds["dy"] = batch.dy.clone();
    const Value loss = ops::sum(g, ops::mul(g, y, g.input("dy", batch.dy.type())));
    differentiate(g, loss, std::vector<Value>{o.x, o.affine.gain, o.affine.bias});
    const auto backend = make_backend(default_backend(), {2});
    CHECK(check_narrow_nodes(*backend, g, feeds) >= 2);
    for (int i = 0; i < g.size(); ++i) {
      if (g.node(i).kind == NodeKind::kOp) ops.insert(g.node(i).op->name);
    }
  }
};

// Norms of columns, of tokens or images, with statistics of the batch, given ones and running ones.
void compare_columns(Compared& compared, const Shape& shape) {
  for (const ColumnMask mask : {ColumnMask::kNone, ColumnMask::kSome, ColumnMask::kEmpty}) {
    if (mask != ColumnMask::kNone && shape.rank() > 2) continue;
    const ColumnBatch batch = batch_of(shape, mask, true);
    for (const NarrowNorm& norm : evaluated_norms()) compared.norm(norm, batch);
    for (const ColumnNorm& norm : column_norms()) {
      if (shape[0] == 1 && norm.name.starts_with("unbiased")) continue;
      for (const bool given : {false, true}) {
        const auto build = [&](Graph& g, const Operands& o) { return norm.build(g, o, given); };
        compared.norm({norm.name, build}, batch);
      }
    }
  }
}

void compare_rows(Compared& compared, const Shape& shape) {
  const ColumnBatch batch = batch_of(shape, ColumnMask::kSome, false);
  for (const NarrowNorm& norm : row_norms()) compared.norm(norm, batch);
  if (shape[1] % 4 != 0) return;
  for (const NarrowNorm& norm : grouped_norms()) compared.norm(norm, batch);
}

void compare_images(Compared& compared, const Shape& shape) {
  for (const std::int64_t groups : {1, 4}) {
    const auto build = [=](Graph& g, const Operands& o) {
      return ops::group_norm(g, o.x, o.affine, {.groups = groups});
    };
    compared.norm({"group_norm of images", build}, batch_of(shape, ColumnMask::kNone, false));
  }
}

// x (rows, channels) holds sequences of `steps` rows.
void compare_sequences(Compared& compared, const Shape& x, std::int64_t steps) {
  const auto build = [=](Graph& g, const Operands& o) {
    const Shape sequences{x[0] / steps, steps, x[1]};
    const Value mask = o.mask.valid() ? ops::reshape(g, o.mask, {sequences[0], steps}) : o.mask;
    const Value y = ops::instance_norm(g, ops::reshape(g, o.x, sequences), o.affine, mask);
    return ops::reshape(g, y, x);
  };
  for (const ColumnMask mask : {ColumnMask::kNone, ColumnMask::kSome, ColumnMask::kEmpty}) {
    compared.norm({"instance_norm", build}, batch_of(x, mask, true));
  }
}

TEST_CASE("backend narrow norms: x, dy, y and dx in bf16 have the bits of float32") {
  for_each_target([] {
    Compared compared;
    compare_rows(compared, {6, 12});
    compare_images(compared, {3, 8, 3, 3});
    compare_sequences(compared, {15, 9}, 5);
    compare_columns(compared, {7, 9});
    for (const OpInfo* op : norm_ops()) {
      const bool is_left_out = op->name.starts_with("weight_norm") || op->name.starts_with("merge");
      CAPTURE(op->name);
      CHECK(compared.ops.contains(op->name) != is_left_out);
    }
    for (const char* op : {"norm_noise", "norm_noise_backward"}) CHECK(compared.ops.contains(op));
  });
}

TEST_CASE("backend narrow norms: the same of rows of every width" * doctest::test_suite("slow")) {
  for_each_target([] {
    Compared compared;
    for (const std::int64_t width : {1, 7, 16, 31, 64, 131, 520, 1001, 2052}) {
      compare_rows(compared, {9, width});
    }
    // Wider than the registers of a block of CUDA, with and without a rest.
    for (const Shape& shape : {Shape{2, 16 * 1024 + 36}, Shape{2, 8 * 1024 + 98}}) {
      compared.norm(row_norms()[0], batch_of(shape, ColumnMask::kNone, false));
    }
    if (is_emulated()) return;
    for (const Shape& shape :
         {Shape{600, 96}, Shape{70, 16 * 1024 + 36}, Shape{6, 8 * 1024 + 100}, Shape{40, 4100}}) {
      compare_rows(compared, shape);
    }
  });
}

TEST_CASE("backend narrow norms: the same of columns, images and sequences" *
          doctest::test_suite("slow")) {
  for_each_target([] {
    Compared compared;
    for (const Shape& shape : {Shape{1, 5}, Shape{3, 64}, Shape{130, 33}, Shape{1, 3, 1, 2},
                               Shape{5, 12, 3, 3}, Shape{3, 7, 9, 11}, Shape{2, 3, 40, 41}}) {
      compare_columns(compared, shape);
    }
    for (const Shape& shape : {Shape{5, 12, 3, 3}, Shape{5, 12, 9, 11}, Shape{3, 8, 40, 41}}) {
      compare_images(compared, shape);
    }
    compare_sequences(compared, {12, 130}, 4);
    compare_sequences(compared, {260, 3}, 130);
    if (is_emulated()) return;
    for (const Shape& shape : {Shape{257, 1052}, Shape{67, 12, 9, 11}}) {
      compare_columns(compared, shape);
    }
    compare_sequences(compared, {700, 67}, 70);
  });
}

// 16 MiB of bf16, of whole lines of 64 bytes.
TEST_CASE("backend narrow norms: the same past the caches" * doctest::test_suite("slow")) {
  if (default_backend() != "onednn") return;
  Compared compared;
  compared.norm(row_norms()[0], batch_of({65'600, 128}, ColumnMask::kNone, false));
}

// A norm whose x is cast to bf16, and whose y is rounded if `stores`.
NormBuild narrowed(const NormBuild& build, bool stores) {
  return [build, stores](Graph& g, const NormInputs& in, double eps) {
    NormInputs narrow = in;
    narrow.x = ops::cast(g, in.x, DType::kBF16);
    const Value y = build(g, narrow, eps);
    if (stores) g.narrow_result(y);
    return y;
  };
}

// A rounding moves y, which is off by kForwardBound of its scale itself, by 2^-8 of it.
constexpr double kRoundedBound = kForwardBound + kBf16Eps * (0x1p23 + kForwardBound);

void check_beside_reference(const NormBuild& build, const NormCase& c) {
  NormData data = make_data(c);
  for (Tensor* of : {&data.x, &data.dy}) *of = of->to(DType::kBF16).to(DType::kF64);
  CAPTURE(c.text());
  const auto run = [&](const std::string& backend, const NormBuild& of) {
    return run_norm(*make_backend(backend, {2}), of, data);
  };
  const NormResult expected = run("reference", build);
  const NormErrors wide =
      norm_errors(c, data, run(default_backend(), narrowed(build, false)), expected);
  CHECK(wide.forward <= kForwardBound);
  CHECK(wide.dx <= kBackwardBound);
  CHECK(wide.parameters <= kBackwardBound);
  for (const std::string& backend : {std::string("reference"), default_backend()}) {
    CAPTURE(backend);
    const NormErrors rounded = norm_errors(c, data, run(backend, narrowed(build, true)), expected);
    CHECK(rounded.forward <= kRoundedBound);
    CHECK(rounded.forward > kForwardBound);
    CHECK(rounded.dx <= kBackwardBound);
  }
}

TEST_CASE("backend narrow norms: within the bounds of float32 and one rounding") {
  struct Subject {
    NormBuild build;
    NormLayout layout = NormLayout::kRows;
    int states = 0;
  };
  const Subject subjects[] = {
      {[](Graph& g, const NormInputs& in, double eps) {
        return ops::layer_norm(g, in.x, {in.gain, in.bias}, {.eps = eps});
      }},
      {[](Graph& g, const NormInputs& in, double eps) {
        return ops::rms_norm(g, in.x, {in.gain, in.bias}, {.eps = eps});
      }},
      {[](Graph& g, const NormInputs& in, double eps) {
         return ops::batch_norm(g, in.x, {in.gain, in.bias}, {in.state[0], in.state[1]},
                                {.eps = eps});
       },
       NormLayout::kColumns, 2},
      {[](Graph& g, const NormInputs& in, double eps) {
         return ops::pn_v(g, in.x, {in.gain, in.bias}, {in.state[0], {}}, {.eps = eps});
       },
       NormLayout::kColumns, 1}};
  constexpr std::pair<double, double> kMoments[] = {{0, 1}, {100, 1}, {0, 1e30}, {0, 1e-30}};
  for (const Subject& subject : subjects) {
    for (const std::int64_t n : {2, 37, 257, 1025}) {
      for (const auto& [mean, deviation] : kMoments) {
        check_beside_reference(subject.build, {.layout = subject.layout,
                                               .groups = 19,
                                               .n = n,
                                               .mean = mean,
                                               .deviation = deviation,
                                               .states = subject.states});
      }
    }
  }
}

}  // namespace
}  // namespace keel::test::narrow_norms
