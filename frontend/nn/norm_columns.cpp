// Norms of a feature over the rows of the batch: running statistics, and an evaluation mode.
#include "frontend/nn/norm_table.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"

namespace keel::nn {
namespace {

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
    const Shape& channels = columns.channels;
    const ops::RunningStatistics running{make_state(net, "running_mean", channels, 0),
                                         make_state(net, "running_var", channels, 1)};
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

struct BatchRenormOptions {
  double eps = 1e-3, rate = 0.01, r_max = -1, d_max = -1, r_max_limit = 3, d_max_limit = 5;
  double r_start = 5000, r_end = 40000, d_start = 5000, d_end = 25000;
  bool gain = true, bias = true;

  static constexpr bool kBatchType = true;
  static constexpr auto fields() {
    using T = BatchRenormOptions;
    return std::tuple{field("eps", &T::eps),
                      field("rate", &T::rate),
                      field("r_max", &T::r_max),
                      field("d_max", &T::d_max),
                      field("r_max_limit", &T::r_max_limit),
                      field("d_max_limit", &T::d_max_limit),
                      field("r_start", &T::r_start),
                      field("r_end", &T::r_end),
                      field("d_start", &T::d_start),
                      field("d_end", &T::d_end),
                      field("gain", &T::gain),
                      field("bias", &T::bias)};
  }
  bool has_bias() const { return bias; }
  Value apply(Net& net, Value value) const {
    const Columns columns(net, value);
    const Shape& channels = columns.channels;
    const ops::RenormState state{make_state(net, "running_mean", channels, 0),
                                 make_state(net, "running_std", channels, 1),
                                 make_counter(net, "step"),
                                 {}};
    BatchRenormAttrs attrs{.eps = eps, .rate = rate, .r_max = r_max, .d_max = d_max};
    attrs.r_max_limit = r_max_limit;
    attrs.d_max_limit = d_max_limit;
    attrs.r_start = r_start;
    attrs.r_end = r_end;
    attrs.d_start = d_start;
    attrs.d_end = d_end;
    attrs.training = net.training();
    const Value y = ops::batch_renorm(net.graph, columns.x, make_affine(net, channels, gain, bias),
                                      state, attrs);
    if (net.training()) {
      net.update(state.mean, y.at(5));
      net.update(state.std, y.at(6));
      net.update(state.step, y.at(7));
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
      {{"batchrenorm", "y = gain (r (x - mean) / sqrt(var + eps) + d) + bias, over the batch",
        "gain, bias", "running_mean, running_std, step", "detached", "Ioffe 2017"},
       "",
       make_norm<BatchRenormOptions>},
  };
  return rows;
}

}  // namespace keel::nn
