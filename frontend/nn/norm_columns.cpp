// Norms of a feature over the rows of the batch: running statistics, and an evaluation mode.
#include "frontend/nn/norm_table.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/batch_renorm.h"
#include "src/ops/norm_noise.h"

namespace keel::nn {
namespace {

// Adds the batch norm of columns; in training it moves the averages.
Value batch_norm_of(NormStates& memory, const Columns& columns, const ops::NormAffine& affine,
                    const ops::RunningStatistics& running, const BatchNormAttrs& attrs) {
  const Value y = ops::batch_norm(memory.graph, columns.x, affine, running, attrs);
  if (attrs.training) {
    memory.update(running.mean, y.at(BatchNormOutput::kNextRunningMean));
    memory.update(running.var, y.at(BatchNormOutput::kNextRunningVar));
  }
  return columns.restore(memory.net, y);
}

struct BatchNormOptions : AffineOptions {
  double eps = 1e-5, keep = 0.9;
  bool unbiased = false, running_unbiased = false;
  ColumnPadding padding = ColumnPadding::kExact;
  double mean_penalty = 0, deviation_penalty = 0;

  static constexpr bool kBatchType = true;
  static constexpr auto fields() {
    using T = BatchNormOptions;
    return std::tuple_cat(
        std::tuple{field("eps", &T::eps), field("keep", &T::keep), field("gain", &T::gain),
                   field("bias", &T::bias), field("unbiased", &T::unbiased),
                   field("running_unbiased", &T::running_unbiased), field("padding", &T::padding),
                   field("mean_penalty", &T::mean_penalty),
                   field("deviation_penalty", &T::deviation_penalty)},
        first_values());
  }
  void validate(const OptionRanges& ranges) const {
    ranges.at_least(0.0, "mean_penalty", mean_penalty);
    ranges.at_least(0.0, "deviation_penalty", deviation_penalty);
  }
  Value apply(NormStates& memory, Value value, Value mask) const {
    const Columns columns(memory.net, value, mask);
    const Shape& channels = columns.channels;
    const ops::RunningStatistics running{memory.state("running_mean", channels, 0),
                                         memory.state("running_var", channels, 1, kNotNegative),
                                         columns.mask, columns.moments(memory.net)};
    return batch_norm_of(memory, columns, memory.affine(channels, *this), running,
                         {.eps = eps,
                          .keep = keep,
                          .unbiased = unbiased,
                          .running_unbiased = running_unbiased,
                          .training = memory.net.training(),
                          .padding = padding,
                          .mean_penalty = mean_penalty,
                          .deviation_penalty = deviation_penalty});
  }
};

// Batch normalization inside a recurrent network (Cooijmans et al. 2016): as every norm over the
// batch it has statistics of its own for every time step; gain and bias are those of all steps. In
// a network that is not recurrent the only step is the first.
struct RecurrentBatchNormOptions : AffineOptions {  // no bias where the one of the cell serves
  double eps = 1e-5, keep = 0.99;
  std::int64_t steps = 100;

  RecurrentBatchNormOptions() { gain_init = 0.1; }
  static constexpr bool kBatchType = true, kNamesFirstStep = true;
  static constexpr auto fields() {
    using T = RecurrentBatchNormOptions;
    return std::tuple_cat(
        std::tuple{field("eps", &T::eps), field("keep", &T::keep), field("gain", &T::gain),
                   field("bias", &T::bias), field("steps", &T::steps)},
        first_values());
  }
  void validate(const OptionRanges& ranges) const {
    ranges.at_least<std::int64_t>(1, "steps", steps);
  }
  Value apply(NormStates& memory, Value value, Value mask) const {
    const Columns columns(memory.net, value, mask);
    const Shape& channels = columns.channels;
    const ops::RunningStatistics running{memory.state("mean", channels, 0),
                                         memory.state("var", channels, 1, kNotNegative),
                                         columns.mask, columns.moments(memory.net)};
    return batch_norm_of(memory, columns, memory.affine(channels, *this), running,
                         {.eps = eps, .keep = keep, .training = memory.net.training()});
  }
};

// A batch norm, and noise after it in training.
struct NoisyBatchNormOptions : BatchNormOptions {
  double n_mean = 0.5, n_std = 1.25, r_mean = 0.1, r_std = 0.1;

  static constexpr auto fields() {
    using T = NoisyBatchNormOptions;
    return std::tuple_cat(BatchNormOptions::fields(),
                          std::tuple{field("n_mean", &T::n_mean), field("n_std", &T::n_std),
                                     field("r_mean", &T::r_mean), field("r_std", &T::r_std)});
  }
  void validate(const OptionRanges& ranges) const {
    BatchNormOptions::validate(ranges);
    for (const auto& [option, width] :
         {std::pair{"n_mean", n_mean}, {"r_mean", r_mean}, {"r_std", r_std}}) {
      ranges.at_least(0.0, option, width);
    }
    ranges.at_least(1.0, "n_std", n_std);
  }
  Value apply(NormStates& memory, Value value, Value mask) const {
    const Value y = BatchNormOptions::apply(memory, value, mask);
    if (!memory.net.training()) return y;
    const RandomKey key = memory.net.random_key("noisybatchnorm");
    const Columns columns(memory.net, y, mask);
    NormNoiseAttrs attrs{.n_mean = n_mean, .n_std = n_std, .r_mean = r_mean, .r_std = r_std};
    attrs.seed = std::int64_t(memory.net.seed);
    attrs.positions = columns.positions();
    return columns.restore(memory.net,
                           ops::norm_noise(memory.graph, columns.x, {key, columns.mask}, attrs));
  }
};

// A negative r_max or d_max follows the schedule of src/ops/norm/batch_renorm.h.
struct BatchRenormOptions : AffineOptions {
  double eps = 1e-3, rate = 0.01, r_max = -1, d_max = -1, r_max_limit = 3, d_max_limit = 5;
  double r_start = 5000, r_end = 40000, d_start = 5000, d_end = 25000;
  double updates = 100000;  // of the run; the steps above are meant for a run of 100000

  static constexpr bool kBatchType = true;
  static constexpr auto fields() {
    using T = BatchRenormOptions;
    return std::tuple_cat(
        std::tuple{field("eps", &T::eps), field("rate", &T::rate), field("r_max", &T::r_max),
                   field("d_max", &T::d_max), field("r_max_limit", &T::r_max_limit),
                   field("d_max_limit", &T::d_max_limit), field("r_start", &T::r_start),
                   field("r_end", &T::r_end), field("d_start", &T::d_start),
                   field("d_end", &T::d_end), field("updates", &T::updates),
                   field("gain", &T::gain), field("bias", &T::bias)},
        first_values());
  }
  void validate(const OptionRanges& ranges) const {
    ranges.expect(updates > 0, "updates", "> 0", updates);
    ranges.expect(0 <= r_start && r_start <= r_end, "r_start", fmt::format("0 to r_end={}", r_end),
                  r_start);
    ranges.expect(0 <= d_start && d_start <= d_end, "d_start", fmt::format("0 to d_end={}", d_end),
                  d_start);
  }
  Value apply(NormStates& memory, Value value, Value mask) const {
    const Columns columns(memory.net, value, mask);
    const Shape& channels = columns.channels;
    const ops::RenormState state{memory.state("running_mean", channels, 0),
                                 memory.state("running_std", channels, 1, kPositive),
                                 memory.counter("step"), columns.mask, columns.moments(memory.net)};
    BatchRenormAttrs attrs = scheduled();
    attrs.training = memory.net.training();
    const Value y =
        ops::batch_renorm(memory.graph, columns.x, memory.affine(channels, *this), state, attrs);
    if (memory.net.training()) {
      memory.update(state.mean, y.at(BatchRenormOutput::kNextRunningMean));
      memory.update(state.std, y.at(BatchRenormOutput::kNextRunningStd));
      memory.update(state.step, y.at(BatchRenormOutput::kNextStep));
    }
    return columns.restore(memory.net, y);
  }

 private:
  BatchRenormAttrs scheduled() const {
    const double scale = updates / 100000;
    BatchRenormAttrs attrs{.eps = eps, .rate = rate, .r_max = r_max, .d_max = d_max};
    attrs.r_max_limit = r_max_limit;
    attrs.d_max_limit = d_max_limit;
    attrs.r_start = r_start * scale;
    attrs.r_end = r_end * scale;
    attrs.d_start = d_start * scale;
    attrs.d_end = d_end * scale;
    return attrs;
  }
};

constexpr const char* kTorchBatchNorm =
    "PyTorch's BatchNorm has momentum = 1 - keep (0.1 by default), eps=1e-5, initial gains of 1, "
    "no penalties, and an unbiased running variance (running_unbiased=true); here it is biased";

}  // namespace

std::span<const NormRow> column_norms() {
  static const std::vector<NormRow> rows{
      {{"batchnorm", "y = gain (x - mean) / sqrt(var + eps) + bias, over the batch", "gain, bias",
        "running_mean, running_var", "exact", "Ioffe & Szegedy 2015; Shen et al. 2020, algorithm 1",
        kTorchBatchNorm},
       1,
       "",
       make_norm<BatchNormOptions>},
      {{"noisybatchnorm",
        "y = S (batchnorm) + M, S and M random with means of every feature, drawn every step",
        "gain, bias", "running_mean, running_var", "exact", "Santurkar et al. 2018, algorithm 1",
        kTorchBatchNorm},
       19,
       "",
       make_norm<NoisyBatchNormOptions>},
      {{"recurrentbatchnorm",
        "y = gain (x - mean) / sqrt(var + eps) + bias, over the batch of a time step; elsewhere "
        "step 0 is the only one",
        "gain, bias", "t0/mean, t0/var, t0/seen", "exact", "Cooijmans et al. 2016",
        "PyTorch has none; its BatchNorm's momentum is 1 - keep, and its running variance is "
        "unbiased, here it is biased"},
       20,
       "",
       make_norm<RecurrentBatchNormOptions>},
      {{"sequencebatchnorm",
        "y = gain (x - mean) / sqrt(var + eps) + bias, over all time steps of the batch",
        "gain, bias", "running_mean, running_var", "exact",
        "Cooijmans et al. 2016, attentive reader", kTorchBatchNorm},
       21,
       "",
       make_norm<BatchNormOptions>,
       "eps=1e-6,keep=0.99,gain_init=0.1"},
      {{"batchrenorm", "y = gain (r (x - mean) / sqrt(var + eps) + d) + bias, over the batch",
        "gain, bias", "running_mean, running_std, step", "detached", "Ioffe 2017",
        "PyTorch has none; rate is what its BatchNorm calls momentum, and the state is the running "
        "deviation, not the variance"},
       13,
       "",
       make_norm<BatchRenormOptions>},
  };
  return rows;
}

}  // namespace keel::nn
