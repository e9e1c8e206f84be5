// The filters of DRAW's attention (Gregor et al. 2015, eq. 21 to 26): a grid of N x N Gaussian
// filters over an image of `rows` x `columns` pixels. All have one width, and each is the product
// of one of N filters along x and one of N along y.
//
//   p (n, 5) floating: the output of a linear layer, g~X, g~Y, log sigma^2, log delta~, log gamma
//   gX = (columns + 1) / 2 (g~X + 1)        gY = (rows + 1) / 2 (g~Y + 1)
//   delta = (max(columns, rows) - 1) / (N - 1) exp(log delta~)
//   mu_i = g + (i - N / 2 - 1/2) delta,  i = 1 .. N           along x and along y
//   K_ia = exp(-(a - mu_i)^2 / (2 sigma^2)),  a = 1 .. columns or rows      F_i = K_i / Z_i
//   Z_i = sum over a of K_ia, and 1e-8 for filters that lie beside the image
// Grid::kRelease follows a public re-implementation: pixels count from 0, g = size / 2
// (g~ + 1), and Z has 1e-4.
//   outputs: fx (n, N, columns), fy (n, N, rows). log gamma, the strength, is ignored.
// backward, with e = a - mu_i and T_ia = F_ia (dF_ia - sum over b of dF_ib F_ib):
//   dmu_i = sum_a T e / sigma^2        dlog sigma^2 = sum_ia T e^2 / (2 sigma^2), of x and of y
//   dg~ = sum_i dmu_i dg / dg~         dlog delta~ = delta sum_i dmu_i (i - N / 2 - 1/2)
// errors: N below 2, for which delta has no meaning; inputs that do not fit.
#pragma once

#include <array>

#include "src/graph/graph.h"

namespace keel {

// Columns of p.
struct FilterParameter {
  enum Place : int { kX, kY, kLogVariance, kLogStride, kLogGamma, kCount };
};

enum class FilterGrid { kPaper, kRelease };
constexpr auto choice_words(FilterGrid) {
  return std::to_array<std::string_view>({"paper", "release"});
}

struct FilterBankAttrs {
  std::int64_t filters = 2, rows = 28, columns = 28;
  FilterGrid grid = FilterGrid::kPaper;
  static constexpr auto fields() {
    using A = FilterBankAttrs;
    return std::tuple{field("filters", &A::filters), field("rows", &A::rows),
                      field("columns", &A::columns), field("grid", &A::grid)};
  }
};

// Places of inputs and outputs. The backward has the inputs and outputs of the forward and the two
// gradients, one of which may be absent.
struct FilterBankInput {
  enum Place : int { kP, kFx, kFy, kDfx, kDfy };
};
struct FilterBankOutput {
  enum Place : int { kFx, kFy };
};

// One axis of the image, and the positions of the filters on it.
struct FilterAxis {
  std::int64_t size;     // pixels
  double first;          // the place of the first pixel
  double per_component;  // dg / dg~: g = per_component (g~ + 1)
  double per_stride;     // delta = per_stride exp(log delta~)
  double least;          // added to the sum in Z
};
FilterAxis filter_axis(const FilterBankAttrs& attrs, bool is_x);
// i - N / 2 - 1/2 for filter i = 0, 1, ..., which is filter i + 1 in the formulas above.
constexpr double filter_offset(std::int64_t filters, std::int64_t i) {
  return double(i) + 0.5 - double(filters) / 2;
}

extern const OpInfo kFilterBank;
extern const OpInfo kFilterBankBackward;  // (p, fx, fy, dfx, dfy) -> dp

namespace ops {

struct FilterBank {
  Value fx, fy;
};
FilterBank filter_bank(Graph& g, Value p, const FilterBankAttrs& attrs);

}  // namespace ops
}  // namespace keel
