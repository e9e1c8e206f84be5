// Curves that stand in place of a norm: an element of y depends on one of x, and training and
// evaluation are the same.
#include "frontend/nn/norm_table.h"
#include "frontend/nn/row_options.h"
#include "src/ops/norm/derf.h"
#include "src/ops/norm/dyt.h"
#include "src/ops/norm/sizes.h"

namespace keel::nn {
namespace {

struct DytOptions : RowOptions, AffineOptions {
  double alpha_init = 0.5;

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = DytOptions;
    return std::tuple_cat(std::tuple{field("axes", &T::axes), field("gain", &T::gain),
                                     field("bias", &T::bias), field("alpha_init", &T::alpha_init)},
                          first_values());
  }
  Value apply(NormStates& memory, Value x) const {
    const std::int64_t n = row_axes(memory.graph, x, axes);
    return ops::dyt(memory.graph, x, memory.affine(row_shape(memory.graph.shape(x), n), *this),
                    memory.parameter("alpha", {1}, constant(alpha_init)), {.axes = n});
  }
};

struct DerfOptions : RowOptions, AffineOptions {
  double alpha_init = 0.5, shift_init = 0;

  static constexpr bool kBatchType = false;
  static constexpr auto fields() {
    using T = DerfOptions;
    return std::tuple_cat(
        std::tuple{field("axes", &T::axes), field("gain", &T::gain), field("bias", &T::bias),
                   field("alpha_init", &T::alpha_init), field("shift_init", &T::shift_init)},
        first_values());
  }
  Value apply(NormStates& memory, Value x) const {
    const std::int64_t n = row_axes(memory.graph, x, axes);
    const ops::DerfCurve curve{memory.parameter("alpha", {1}, constant(alpha_init)),
                               memory.parameter("shift", {1}, constant(shift_init))};
    return ops::derf(memory.graph, x, memory.affine(row_shape(memory.graph.shape(x), n), *this),
                     curve, {.axes = n});
  }
};

}  // namespace

std::span<const NormRow> curve_norms() {
  static const std::vector<NormRow> rows{
      {{"dyt", "y = gain tanh(alpha x) + bias, one alpha", "gain, bias, alpha", "-", "exact",
        "Zhu, Chen, He, LeCun, Liu 2025",
        "in language models the authors also multiply the embedding by a learned scalar, and alpha "
        "of attention's norms starts at other values than that of the others"},
       22,
       "",
       make_norm<DytOptions>},
      {{"derf", "y = gain erf(alpha x + shift) + bias, one alpha, one shift",
        "gain, bias, alpha, shift", "-", "exact", "Chen, Lu, Zhu, Sun, Liu 2025"},
       23,
       "",
       make_norm<DerfOptions>},
  };
  return rows;
}

}  // namespace keel::nn
