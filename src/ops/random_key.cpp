#include "src/ops/random_key.h"

namespace keel {

SampledRows sampled_rows(const Shape& x) {
  if (x.rank() == 0) return {1, 1};
  return {x[0], x.elements(1, x.rank())};
}

void expect_random_key(const InferContext& c, int step, int first_row) {
  for (const auto& [port, name] : {std::pair{step, "step"}, {first_row, "first_row"}}) {
    c.expect_dtype(port, name, DType::kI32);
    c.expect_shape(port, name, {});
  }
}

void expect_row_numbers(const InferContext& c, std::int64_t elements, std::int64_t each) {
  c.expect(elements < kRowNumbers / each, "x",
           fmt::format("fewer than {} elements a row", kRowNumbers / each),
           fmt::format("{}", elements));
}

}  // namespace keel
