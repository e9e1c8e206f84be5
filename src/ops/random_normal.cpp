#include "src/ops/random_normal.h"

namespace keel {
namespace {

using In = RandomNormalInput;

std::vector<TensorType> infer(const InferContext& c) {
  const auto& attrs = c.attrs.as<RandomNormalAttrs>();
  expect_random_key(c, In::kStep, In::kFirstRow);
  c.expect(attrs.dtype == DType::kF32 || attrs.dtype == DType::kF64, "y", "f32 or f64",
           std::string(name_of(attrs.dtype)));
  expect_row_numbers(c, sampled_rows(attrs.shape).width, 2);
  return {{attrs.dtype, attrs.shape}};
}

}  // namespace

const OpInfo kRandomNormal{.name = "random_normal",
                           .inputs = {{"step", DType::kI32}, {"first_row", DType::kI32}},
                           .attrs = RandomNormalAttrs{},
                           .infer = infer};

namespace ops {

Value random_normal(Graph& g, const TensorType& type, const RandomKey& key, std::int64_t seed) {
  const std::int64_t stream{stream_of(g.unique_name("random_normal"))};
  return g.add(kRandomNormal, {key.step, key.first_row},
               RandomNormalAttrs{type.shape, type.dtype, seed, stream});
}

}  // namespace ops
}  // namespace keel
