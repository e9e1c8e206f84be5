// The noise after a batch norm: the numbers of the contract.
#include "src/ops/norm_noise.h"

#include <limits>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

OpCase noise_case(const Shape& shape, const NormNoiseAttrs& attrs, bool masked = false) {
  OpCase c;
  c.inputs.push_back(random_f32(shape, 1));
  for (std::int32_t key : {12345, 48}) c.inputs.push_back(Tensor::of<std::int32_t>({}, {key}));
  Tensor mask(DType::kU8, Shape{shape[0]});
  for (std::int64_t row = 0; row < shape[0]; ++row)
    mask.as<std::uint8_t>()[std::size_t(row)] = row % 3 != 1;
  if (masked) c.inputs.push_back(std::move(mask));
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    return std::vector{g.add(kNormNoise, {v[0], v[1], v[2], v.size() > 3 ? v[3] : Value{}}, attrs)};
  };
  return c;
}

TEST_CASE("backend norm_noise: any key, sequences, and rows that a mask leaves out") {
  const NormNoiseAttrs hard{2, 3, 1, 1, -7, 0xFFFFFFFFll};
  for_each_target([&] {
    for (const std::int64_t n : {1, 16, 33, 257, 2500}) {
      CAPTURE(n);
      NormNoiseAttrs sequences = hard;
      sequences.positions = n;
      check_agrees(noise_case({2 * n, 3}, sequences));
      check_agrees(noise_case({4, n}, hard, true));
      check_agrees(noise_case({2, n, 3, 3}, hard));
    }
  });
}

TEST_CASE("backend norm_noise: no channels") {
  OpCase c = noise_case({3, 0}, {});
  CHECK(run_tested(c).at("y0").elements() == 0);
}

}  // namespace
}  // namespace keel::test
