// Norms of a row by its own statistics: training and evaluation are the same.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "frontend/nn/norm_table.h"
#include "frontend/nn/row_options.h"
#include "src/ops/elementwise.h"
#include "src/ops/norm/ada_norm.h"
#include "src/ops/norm/detach_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/scale_norm.h"
#include "src/ops/norm/seed_norm.h"
#include "src/ops/norm/sizes.h"

namespace keel::nn {
namespace {

struct NoneOptions {
  static constexpr bool kBatchType = false;
  static constexpr auto fields() { return std::tuple{}; }
  bool has_bias() const { return false; }
  Value apply(NormStates&, Value x) const { return x; }
};

struct LayerNormOptions : RowOptions, AffineOptions {
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false;
  bool per_pixel = false;  // of images a row is the channels of one pixel

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = LayerNormOptions;
    return std::tuple_cat(
        std::tuple{field("axes", &T::axes), field("eps", &T::eps), field("gain", &T::gain),
                   field("bias", &T::bias), field("unbiased", &T::unbiased),
                   field("eps_outside", &T::eps_outside), field("per_pixel", &T::per_pixel)},
        first_values());
  }
  void validate(const OptionRanges& ranges) const {
    RowOptions::validate(ranges);
    ranges.expect(!per_pixel || axes == 0, "axes", "0 with per_pixel", axes);
  }
  Value apply(NormStates& memory, Value x) const {
    Graph& g = memory.graph;
    if (!per_pixel || g.shape(x).rank() != 4) return of_rows(memory, x);
    const Value y = of_rows(memory, ops::transpose(g, x, {0, 2, 3, 1}), 1);
    return ops::transpose(g, y, {0, 3, 1, 2});
  }

 private:
  Value of_rows(NormStates& memory, Value x, std::int64_t own_axes = 0) const {
    const std::int64_t n = row_axes(memory.graph, x, std::max(axes, own_axes));
    return ops::layer_norm(
        memory.graph, x, memory.affine(row_shape(memory.graph.shape(x), n), *this),
        {.axes = n, .eps = eps, .unbiased = unbiased, .eps_outside = eps_outside});
  }
};

struct DetachNormOptions : RowOptions {
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false, detach_mean = true, detach_variance = true;

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = DetachNormOptions;
    return std::tuple{field("axes", &T::axes),
                      field("eps", &T::eps),
                      field("unbiased", &T::unbiased),
                      field("eps_outside", &T::eps_outside),
                      field("detach_mean", &T::detach_mean),
                      field("detach_variance", &T::detach_variance)};
  }
  bool has_bias() const { return false; }
  Value apply(NormStates& memory, Value x) const {
    return ops::detach_norm(memory.graph, x,
                            {.axes = row_axes(memory.graph, x, axes),
                             .eps = eps,
                             .unbiased = unbiased,
                             .eps_outside = eps_outside,
                             .detach_mean = detach_mean,
                             .detach_variance = detach_variance});
  }
};

struct AdaNormOptions : RowOptions {
  double eps = 1e-5, C = 1, k = 0.1;
  bool unbiased = false, eps_outside = false, detach = true;

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = AdaNormOptions;
    return std::tuple{field("axes", &T::axes),
                      field("eps", &T::eps),
                      field("C", &T::C),
                      field("k", &T::k),
                      field("unbiased", &T::unbiased),
                      field("eps_outside", &T::eps_outside),
                      field("detach", &T::detach)};
  }
  bool has_bias() const { return false; }
  Value apply(NormStates& memory, Value x) const {
    return ops::ada_norm(memory.graph, x,
                         {.axes = row_axes(memory.graph, x, axes),
                          .eps = eps,
                          .unbiased = unbiased,
                          .eps_outside = eps_outside,
                          .C = C,
                          .k = k,
                          .detach = detach});
  }
};

struct RmsNormOptions : RowOptions, AffineOptions {
  double eps = 1e-8;
  double offset = 0;  // of the gain
  bool cast_first = false;

  RmsNormOptions() { bias = false; }
  // At first the offset and the gain are 1 together.
  static RmsNormOptions defaults(const OptionText& given) {
    RmsNormOptions options;
    for (const auto& [key, value] : given) {
      if (key != "offset") continue;
      double offset = 0;
      std::from_chars(value.data(), value.data() + value.size(), offset);  // refused later
      options.gain_init = 1 - offset;
    }
    return options;
  }
  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = RmsNormOptions;
    return std::tuple_cat(
        std::tuple{field("axes", &T::axes), field("eps", &T::eps), field("gain", &T::gain),
                   field("bias", &T::bias), field("offset", &T::offset),
                   field("cast_first", &T::cast_first)},
        first_values());
  }
  void validate(const OptionRanges& ranges) const {
    RowOptions::validate(ranges);
    ranges.expect(gain || offset == 0, "offset", "gain=true beside it", offset);
    ranges.expect(gain || !cast_first, "cast_first", "gain=true beside it", cast_first);
  }
  Value apply(NormStates& memory, Value x) const {
    const std::int64_t n = row_axes(memory.graph, x, axes);
    const ops::NormAffine affine = memory.affine(row_shape(memory.graph.shape(x), n), *this);
    if (cast_first) return rounded_first(memory.graph, x, affine, n);
    return ops::rms_norm(memory.graph, x, affine, {.axes = n, .eps = eps, .offset = offset});
  }

 private:
  Value rounded_first(Graph& g, Value x, const ops::NormAffine& affine, std::int64_t n) const {
    const Value xhat = ops::rms_norm(g, x, {}, {.axes = n, .eps = eps});
    const Value rounded = ops::cast(g, ops::cast(g, xhat, DType::kBF16), g.type(xhat).dtype);
    const Value gain_with_offset =
        offset == 0 ? affine.gain : ops::scale(g, affine.gain, 1, offset);
    const Value y = ops::mul(g, rounded, gain_with_offset);
    return affine.bias.valid() ? ops::add(g, y, affine.bias) : y;
  }
};

struct ScaleNormOptions : RowOptions {
  double eps = 1e-5;
  double gain_init = 1;  // times the root of the width, with which y is as large as a layernorm's

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = ScaleNormOptions;
    return std::tuple{field("axes", &T::axes), field("eps", &T::eps),
                      field("gain_init", &T::gain_init)};
  }
  bool has_bias() const { return false; }
  Value apply(NormStates& memory, Value x) const {
    const std::int64_t n = row_axes(memory.graph, x, axes);
    const double root = std::sqrt(double(row_shape(memory.graph.shape(x), n).elements()));
    const Value gain = memory.parameter("gain", {1}, constant(gain_init * root));
    return ops::scale_norm(memory.graph, x, gain, {.axes = n, .eps = eps});
  }
};

struct SeedNormOptions : RowOptions {
  double eps = 1e-6;
  double gain_init = 1, a_init = 1, b_init = 0;

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = SeedNormOptions;
    return std::tuple{field("axes", &T::axes), field("eps", &T::eps),
                      field("gain_init", &T::gain_init), field("a_init", &T::a_init),
                      field("b_init", &T::b_init)};
  }
  bool has_bias() const { return false; }
  Value apply(NormStates& memory, Value x) const {
    const std::int64_t n = row_axes(memory.graph, x, axes);
    const Shape row = row_shape(memory.graph.shape(x), n);
    AffineOptions affine{.bias = false, .gain_init = gain_init};
    return ops::seed_norm(
        memory.graph, x,
        {memory.affine(row, affine).gain, memory.parameter("a", row, constant(a_init)),
         memory.parameter("b", row, constant(b_init))},
        {.axes = n, .eps = eps});
  }
};

constexpr const char* kXuProgram =
    "Xu et al.'s program divides by the unbiased deviation plus eps (unbiased=true, "
    "eps_outside=true)";

}  // namespace

std::span<const NormRow> row_norms() {
  static const std::vector<NormRow> rows{
      {{"none", "y = x", "-", "-", "exact", "Xu et al. 2019, w/o Norm"},
       6,
       "",
       make_norm<NoneOptions>},
      {{"layernorm", "y = gain (x - mean) / sqrt(var + eps) + bias, over a row", "gain, bias", "-",
        "exact", "Ba, Kiros, Hinton 2016, eq. 3",
        "as PyTorch's LayerNorm; of images a row is all of c, h and w, or with per_pixel the "
        "channels of one pixel"},
       0,
       "",
       make_norm<LayerNormOptions>},
      {{"layernorm_simple", "y = (x - mean) / sqrt(var + eps), over a row", "-", "-", "exact",
        "Xu et al. 2019, eq. 2", kXuProgram},
       4,
       "gain=false,bias=false,gain_init=1,bias_init=0",
       make_norm<LayerNormOptions>},
      {{"detachnorm", "y = (x - mean) / sqrt(var + eps), mean and deviation constant in backward",
        "-", "-", "detached", "Xu et al. 2019, eq. 4"},
       10,
       "detach_mean=true,detach_variance=true",
       make_norm<DetachNormOptions>},
      {{"detachmean", "y = (x - mean) / sqrt(var + eps), mean constant in backward", "-", "-",
        "detached", "Xu et al. 2019, section 3.3"},
       7,
       "detach_mean=true,detach_variance=false",
       make_norm<DetachNormOptions>},
      {{"detachvariance", "y = (x - mean) / sqrt(var + eps), deviation constant in backward", "-",
        "-", "detached", "Xu et al. 2019, section 3.3"},
       14,
       "detach_mean=false,detach_variance=true",
       make_norm<DetachNormOptions>},
      {{"adanorm", "y = C (1 - k xhat) xhat, xhat as layernorm_simple, C (1 - k xhat) constant",
        "-", "-", "detached", "Xu et al. 2019, eq. 6 to 9",
        std::string(kXuProgram) + ", and its C is 2 by default"},
       5,
       "",
       make_norm<AdaNormOptions>},
      {{"rmsnorm", "y = (offset + gain) x / sqrt(mean(x^2) + eps) + bias, over a row", "gain, bias",
        "-", "exact", "Zhang & Sennrich 2019",
        "PyTorch's RMSNorm has eps=1.1920929e-07 in float32 by default; Zhang & Sennrich's program "
        "adds eps to the root, not to what is under it; Llama's program rounds x / sqrt(...) to "
        "bfloat16 before the product with the gain (cast_first=true), Gemma's after it"},
       3,
       "",
       make_norm<RmsNormOptions>},
      {{"scalenorm", "y = gain x / max(|x|, eps), over a row, one gain", "gain", "-", "exact",
        "Nguyen & Salazar 2019"},
       15,
       "",
       make_norm<ScaleNormOptions>},
      {{"seednorm", "y = (tanh(sum(x b)) a + gain) x / sqrt(mean(x^2) + eps), over a row",
        "gain, a, b", "-", "exact", "Cai et al. 2025"},
       24,
       "",
       make_norm<SeedNormOptions>},
  };
  return rows;
}

}  // namespace keel::nn
