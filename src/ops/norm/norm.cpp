#include "src/ops/norm/norm.h"

namespace keel {

void expect_statistic(const InferContext& c, const NormStatistic& statistic, std::int64_t count) {
  c.expect(statistic.eps >= 0, "eps", ">= 0", fmt::format("{}", statistic.eps));
  c.expect(!statistic.unbiased || count >= 2, "x",
           "at least 2 elements a statistic for an unbiased variance", fmt::format("{}", count));
}

void expect_affine(const InferContext& c, int gain, int bias, const Shape& expected) {
  for (const auto& [place, name] : {std::pair{gain, "gain"}, {bias, "bias"}}) {
    if (!c.has(place)) continue;
    c.expect_shape(place, name, expected);
    c.expect_dtype(place, name, c.dtype(NormInput::kX));
  }
}

TensorType type_if(bool applies, const TensorType& type) {
  return applies ? type : absent_type(type.dtype);
}

TensorType gradient_type(const InferContext& c, int input) {
  return c.has(input) ? c.input(input) : absent_type(c.dtype(NormInput::kX));
}

}  // namespace keel
