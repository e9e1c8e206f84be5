// Norms of a row by its own statistics: training and evaluation are the same.
#include "frontend/nn/norm_table.h"
#include "src/ops/layout.h"
#include "src/ops/norm/layer_norm.h"

namespace keel::nn {
namespace {

// Trailing axes that make a row: all but the first of images (n, c, h, w), else the last.
std::int64_t row_axes(const Net& net, Value x, std::int64_t asked) {
  const Shape& shape = net.graph.shape(x);
  const std::int64_t axes = asked > 0 ? asked : shape.rank() == 4 ? 3 : 1;
  check(axes <= shape.rank(), ErrorKind::kUsage, "norm: axes={} of {}", axes, shape.text());
  return axes;
}

Shape row_shape(const Net& net, Value x, std::int64_t axes) {
  return Shape(net.graph.shape(x).sizes().last(std::size_t(axes)));
}

struct NoneOptions {
  static constexpr bool kBatchType = false;
  static constexpr auto fields() { return std::tuple{}; }
  bool has_bias() const { return false; }
  Value apply(Net&, Value x) const { return x; }
};

struct LayerNormOptions {
  std::int64_t axes = 0;  // 0: see row_axes
  double eps = 1e-5;
  bool gain = true, bias = true, unbiased = false, eps_outside = false;

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = LayerNormOptions;
    return std::tuple{field("axes", &T::axes),         field("eps", &T::eps),
                      field("gain", &T::gain),         field("bias", &T::bias),
                      field("unbiased", &T::unbiased), field("eps_outside", &T::eps_outside)};
  }
  bool has_bias() const { return bias; }
  Value apply(Net& net, Value x) const {
    const std::int64_t n = row_axes(net, x, axes);
    return ops::layer_norm(
        net.graph, x, make_affine(net, row_shape(net, x, n), gain, bias),
        {.axes = n, .eps = eps, .unbiased = unbiased, .eps_outside = eps_outside});
  }
};

}  // namespace

std::span<const NormRow> row_norms() {
  static const std::vector<NormRow> rows{
      {{"none", "y = x", "-", "-", "exact", "Xu et al. 2019, w/o Norm"},
       "",
       make_norm<NoneOptions>},
      {{"layernorm", "y = gain (x - mean) / sqrt(var + eps) + bias, over a row", "gain, bias", "-",
        "exact", "Ba, Kiros, Hinton 2016, eq. 3"},
       "",
       make_norm<LayerNormOptions>},
      {{"layernorm_simple", "y = (x - mean) / sqrt(var + eps), over a row", "-", "-", "exact",
        "Xu et al. 2019, eq. 2"},
       "gain=false,bias=false",
       make_norm<LayerNormOptions>},
  };
  return rows;
}

}  // namespace keel::nn
