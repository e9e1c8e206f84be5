#include "src/ops/norm/norm.h"

namespace keel {

void expect_statistic(const InferContext& c, const NormStatistic& statistic, std::int64_t count) {
  c.expect(statistic.eps >= 0, "eps", ">= 0", fmt::format("{}", statistic.eps));
  c.expect(!statistic.unbiased || count >= 2, "x",
           "at least 2 elements a statistic for an unbiased variance", fmt::format("{}", count));
}

void expect_affine(const InferContext& c, int i, const Shape& expected) {
  constexpr std::string_view kNames[] = {"gain", "bias"};
  for (int k = 0; k < 2; ++k) {
    if (!c.has(i + k)) continue;
    c.expect_shape(i + k, kNames[k], expected);
    c.expect_dtype(i + k, kNames[k], c.dtype(0));
  }
}

TensorType gradient_type(const InferContext& c, int i) {
  return c.has(i) ? c.input(i) : absent_type(c.dtype(0));
}

}  // namespace keel
