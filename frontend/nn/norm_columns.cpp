// Norms of a feature over the rows of the batch: running statistics, and an evaluation mode.
#include "frontend/nn/norm_table.h"
#include "src/ops/layout.h"
#include "src/ops/norm/batch_norm.h"

namespace keel::nn {
namespace {

// x as the column norms take it: images (n, c, h, w) as they are, else (rows, features).
struct Columns {
  Value x;
  Shape shape;  // before
  std::int64_t channels;

  Columns(Net& net, Value value) : x(value), shape(net.graph.shape(value)) {
    const bool image = shape.rank() == 4;
    channels = image ? shape[1] : shape.back();
    if (!image) {
      x = ops::reshape(net.graph, x, {shape.elements(0, shape.rank() - 1), channels});
    }
  }
  Value restore(Net& net, Value y) const { return ops::reshape(net.graph, y, shape); }
};

Value state(Net& net, const std::string& name, const Shape& shape, double initial) {
  return net.graph.state(net.graph.prefix() + name, {net.dtype, shape}, constant(initial));
}

struct BatchNormOptions {
  double eps = 1e-5, keep = 0.9;
  bool gain = true, bias = true, unbiased = false, running_unbiased = false;

  static constexpr bool kBatchType = true;
  static constexpr auto fields() {
    using T = BatchNormOptions;
    return std::tuple{
        field("eps", &T::eps),           field("keep", &T::keep),
        field("gain", &T::gain),         field("bias", &T::bias),
        field("unbiased", &T::unbiased), field("running_unbiased", &T::running_unbiased)};
  }
  bool has_bias() const { return bias; }
  Value apply(Net& net, Value value) const {
    const Columns columns(net, value);
    const Shape channels{columns.channels};
    const ops::RunningStatistics running{state(net, "running_mean", channels, 0),
                                         state(net, "running_var", channels, 1)};
    const Value y =
        ops::batch_norm(net.graph, columns.x, make_affine(net, channels, gain, bias), running,
                        {.eps = eps,
                         .keep = keep,
                         .unbiased = unbiased,
                         .running_unbiased = running_unbiased,
                         .training = net.training()});
    if (net.training()) {
      net.update(running.mean, y.at(3));
      net.update(running.var, y.at(4));
    }
    return columns.restore(net, y);
  }
};

}  // namespace

std::span<const NormRow> column_norms() {
  static const std::vector<NormRow> rows{
      {{"batchnorm", "y = gain (x - mean) / sqrt(var + eps) + bias, over the batch", "gain, bias",
        "running_mean, running_var", "exact",
        "Ioffe & Szegedy 2015; Shen et al. 2020, algorithm 1"},
       "",
       make_norm<BatchNormOptions>},
  };
  return rows;
}

}  // namespace keel::nn
