// Norms of a feature by its quadratic mean over the batch: nothing is subtracted.
#include "frontend/nn/norm_table.h"
#include "src/ops/norm/mabn.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/unified_norm.h"

namespace keel::nn {
namespace {

struct PnVOptions : AffineOptions {
  double eps = 1e-5, keep = 0.9;

  static constexpr bool kBatchType = true;
  static constexpr auto fields() {
    using T = PnVOptions;
    return std::tuple_cat(std::tuple{field("eps", &T::eps), field("keep", &T::keep),
                                     field("gain", &T::gain), field("bias", &T::bias)},
                          first_values());
  }
  Value apply(NormStates& memory, Value value, Value mask) const {
    const Columns columns(memory.net, value, mask);
    const Value psi2 = memory.state("psi2", columns.channels, 1, kNotNegative);
    const Value y = ops::pn_v(memory.graph, columns.x, memory.affine(columns.channels, *this),
                              {psi2, columns.mask, columns.squares(memory.net)},
                              {.eps = eps, .keep = keep, .training = memory.net.training()});
    if (memory.net.training()) memory.update(psi2, y.at(PnVOutput::kNextPsi2));
    return columns.restore(memory.net, y);
  }
};

constexpr const char* kNoContraction =
    "the recursion of nu is no contraction, and diverges if this stays above 2";

struct PowerNormOptions : AffineOptions {
  PowerNormMode mode = PowerNormMode::kRelease;
  std::int64_t heads = 1;  // groups of the scaling in front of tokens; 0 for none
  std::int64_t warmup = 0;
  double alpha_f = 0.9, alpha_b = 0.9, eps = 1e-5;  // eps: see defaults
  bool pad_stats = false;  // the statistics of the backward are taken over padding too

  static constexpr bool kBatchType = true;
  static constexpr auto fields() {
    using T = PowerNormOptions;
    return std::tuple_cat(
        std::tuple{field("mode", &T::mode), field("heads", &T::heads), field("warmup", &T::warmup),
                   field("alpha_f", &T::alpha_f), field("alpha_b", &T::alpha_b),
                   field("eps", &T::eps), field("gain", &T::gain), field("bias", &T::bias),
                   field("pad_stats", &T::pad_stats)},
        first_values());
  }
  // The paper's roots hold no eps, the release's do.
  static PowerNormOptions defaults(const OptionText& given) {
    PowerNormOptions options;
    for (const auto& [key, value] : given) {
      if (key == "mode") options.eps = value == "paper" ? 0 : 1e-5;
    }
    return options;
  }
  void validate(const OptionRanges& ranges) const {
    ranges.at_least<std::int64_t>(0, "heads", heads);
  }
  bool scales_rows() const { return heads > 0; }
  // The groups of the scaling in front of x; images are not scaled.
  std::int64_t scaling_groups(const Shape& x) const {
    const OptionRanges ranges{"powernorm"};
    if (x.rank() == 4) {
      ranges.expect(heads <= 1, "heads", "0 or 1 for images, which are not scaled", heads);
      return 0;
    }
    ranges.expect(heads == 0 || x.back() % heads == 0, "heads",
                  fmt::format("0 or a divisor of {} features", x.back()), heads);
    return heads;
  }
  Value apply(NormStates& memory, Value value, Value mask) const {
    const std::int64_t groups = scaling_groups(memory.graph.shape(value));
    // Shared squares are those of what the scaling gives, so that it has to be a node of its own.
    const bool is_apart = groups > 0 && Columns::is_shared(memory.net);
    if (is_apart) value = ops::group_scaling(memory.graph, value, {.groups = groups});
    const Columns columns(memory.net, value, mask);
    const ops::PowerNormState state{memory.state("psi2", columns.channels, 1, kNotNegative),
                                    memory.state("nu", columns.channels, 0), memory.counter("step"),
                                    columns.mask, columns.squares(memory.net, pad_stats)};
    const Value y =
        ops::power_norm(memory.graph, columns.x, memory.affine(columns.channels, *this), state,
                        {.mode = mode,
                         .eps = eps,
                         .alpha_f = alpha_f,
                         .alpha_b = alpha_b,
                         .warmup = warmup,
                         .pad_stats = pad_stats,
                         .training = memory.net.training(),
                         .groups = is_apart ? 0 : groups});
    if (memory.net.training()) {
      using Out = PowerNormOutput;
      memory.update(state.psi2, y.at(Out::kNextPsi2));
      memory.update(state.step, y.at(Out::kNextStep));
      memory.net.monitor({"powernorm.contraction", y.at(Out::kContraction), 1, kNoContraction});
      memory.net.monitor({"powernorm.nu_max", y.at(Out::kNuMax)});
    }
    return columns.restore(memory.net, y);
  }
};

struct MabnOptions : AffineOptions {
  std::int64_t m = 16, warmup = 100, clip_after = 1000;
  double keep = 0.98, clip = 5, eps = 1e-5;
  bool centralize = false;  // whether the weight of the layer before is centralized as well

  static constexpr bool kBatchType = true;
  static constexpr auto fields() {
    using T = MabnOptions;
    return std::tuple_cat(
        std::tuple{field("m", &T::m), field("warmup", &T::warmup),
                   field("clip_after", &T::clip_after), field("keep", &T::keep),
                   field("clip", &T::clip), field("eps", &T::eps), field("gain", &T::gain),
                   field("bias", &T::bias), field("centralize", &T::centralize)},
        first_values());
  }
  void validate(const OptionRanges& ranges) const {
    ranges.at_least<std::int64_t>(1, "m", m);
    ranges.at_least<std::int64_t>(0, "warmup", warmup);
    ranges.at_least<std::int64_t>(0, "clip_after", clip_after);
  }
  WeightForm weight_form() const { return {.centralize = centralize}; }
  Value apply(NormStates& memory, Value value, Value mask) const {
    const Columns columns(memory.net, value, mask);
    const Shape ring{m, columns.channels[0]};
    const ops::MabnState state{memory.state("x2", ring, 0, kNotNegative),
                               memory.state("gz", ring, 0),
                               memory.state("v", columns.channels, 1, kNotNegative),
                               memory.counter("step"),
                               columns.mask,
                               columns.squares(memory.net)};
    const Value y =
        ops::mabn(memory.graph, columns.x, memory.affine(columns.channels, *this), state,
                  {.eps = eps,
                   .keep = keep,
                   .clip = clip,
                   .m = m,
                   .warmup = warmup,
                   .clip_after = clip_after,
                   .training = memory.net.training()});
    if (memory.net.training()) {
      memory.update(state.x2, y.at(MabnOutput::kNextX2));
      memory.update(state.v, y.at(MabnOutput::kNextV));
      memory.update(state.step, y.at(MabnOutput::kNextStep));
    }
    return columns.restore(memory.net, y);
  }
};

struct UnifiedNormOptions : AffineOptions {
  std::int64_t m = 4, warmup = 4000, clip_after = 1000;
  double keep = 0.9, clip = 5, eps = 1e-5;
  bool filter = true;  // whether batches that are outliers use their own statistics

  static constexpr bool kBatchType = true;
  static constexpr auto fields() {
    using T = UnifiedNormOptions;
    return std::tuple_cat(
        std::tuple{field("m", &T::m), field("warmup", &T::warmup),
                   field("clip_after", &T::clip_after), field("filter", &T::filter),
                   field("keep", &T::keep), field("clip", &T::clip), field("eps", &T::eps),
                   field("gain", &T::gain), field("bias", &T::bias)},
        first_values());
  }
  void validate(const OptionRanges& ranges) const {
    ranges.at_least<std::int64_t>(1, "m", m);
    ranges.at_least<std::int64_t>(0, "warmup", warmup);
    ranges.at_least<std::int64_t>(0, "clip_after", clip_after);
  }
  Value apply(NormStates& memory, Value value, Value mask) const {
    const Columns columns(memory.net, value, mask);
    const Shape ring{m, columns.channels[0]};
    const ops::UnifiedNormState state{memory.state("x2", ring, 0, kNotNegative),
                                      memory.state("gz", ring, 0),
                                      memory.state("v", columns.channels, 1, kNotNegative),
                                      memory.state("nu", columns.channels, 0),
                                      memory.counter("step"),
                                      columns.mask,
                                      columns.squares(memory.net)};
    const Value y =
        ops::unified_norm(memory.graph, columns.x, memory.affine(columns.channels, *this), state,
                          {.eps = eps,
                           .keep = keep,
                           .clip = clip,
                           .m = m,
                           .warmup = warmup,
                           .clip_after = clip_after,
                           .filter = filter,
                           .training = memory.net.training()});
    if (memory.net.training()) {
      using Out = UnifiedNormOutput;
      memory.update(state.x2, y.at(Out::kNextX2));
      memory.update(state.v, y.at(Out::kNextV));
      memory.update(state.step, y.at(Out::kNextStep));
    }
    return columns.restore(memory.net, y);
  }
};

}  // namespace

std::span<const NormRow> quadratic_norms() {
  static const std::vector<NormRow> rows{
      {{"pn_v", "y = gain x / sqrt(mean(x^2) + eps) + bias, over the batch", "gain, bias", "psi2",
        "exact", "Shen et al. 2020, eq. 4 to 6", "PyTorch has none"},
       9,
       "",
       make_norm<PnVOptions>},
      {{"powernorm",
        "y = gain x / sqrt(psi2 + eps) + bias, psi2 a running mean(x^2), after a group scaling "
        "of tokens (images are not scaled); mode=paper has eps=0",
        "gain, bias", "psi2, nu, step", "surrogate",
        "Shen et al. 2020, algorithm 2 (mode=paper), and their program (mode=release)",
        "the release keeps ema_gz, with nu = (1 - alpha_b) ema_gz; the means of its backward count "
        "padding (pad_stats=true); it scales in as many groups as there are heads (heads=...); its "
        "warm-up is that of the learning rate (warmup=...)"},
       2,
       "",
       make_norm<PowerNormOptions>},
      {{"mabn", "y = gain r x / sqrt(V + eps) + bias, V = mean(x^2) over the last m batches",
        "gain, bias", "x2, gz, v, step", "surrogate", "Yan et al. 2020",
        "PyTorch has none; its authors have the weights before it centralized (centralize=true)"},
       16,
       "",
       make_norm<MabnOptions>},
      {{"unifiednorm",
        "y = gain x / sqrt(V + eps) + bias, V the geometric mean of mean(x^2) of the last m "
        "batches; a batch that is an outlier has its own",
        "gain, bias", "x2, gz, v, nu, step", "surrogate",
        "Yang et al. 2022, as their program has it",
        "PyTorch has none; its authors leave the filter out for text (filter=false)"},
       25,
       "",
       make_norm<UnifiedNormOptions>},
  };
  return rows;
}

}  // namespace keel::nn
