// Norms of a layer's weight: the layer's output is not normalized.
#include "frontend/nn/norm_table.h"

namespace keel::nn {
namespace {

struct WeightNormOptions {
  double eps = 0, deviation = 0.05, gain_init = 1;

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = WeightNormOptions;
    return std::tuple{field("eps", &T::eps), field("deviation", &T::deviation),
                      field("gain_init", &T::gain_init)};
  }
  void validate(const OptionRanges& ranges) const {
    ranges.expect(deviation > 0, "deviation", "> 0", deviation);
    ranges.expect(gain_init > 0, "gain_init", "> 0", gain_init);
  }
  bool has_bias() const { return false; }
  WeightForm weight_form() const {
    return {.normalize = true, .eps = eps, .deviation = deviation, .gain_init = gain_init};
  }
  Value apply(NormStates&, Value x) const { return x; }
};

}  // namespace

std::span<const NormRow> weight_norms() {
  static const std::vector<NormRow> rows{
      {{"weightnorm", "w = gain v / |v|, over the weights of a unit of the layer before", "gain",
        "-", "exact", "Salimans & Kingma 2016",
        "PyTorch's weight_norm takes v and gain from the layer's initial weights; here v is "
        "sampled with the deviation, and the first batch sets gain and bias"},
       12,
       "",
       make_norm<WeightNormOptions>},
  };
  return rows;
}

}  // namespace keel::nn
