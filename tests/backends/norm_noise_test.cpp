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

// A normal number n is a radius below 5.8, whose logarithm, product and root are off by 3 eps of
// it, times a cosine off by 2 eps: 29 eps (eps 2^-24). S = v + r_std n and M = m + r_mean u add two
// roundings each, S x + M one more.
void check_noise(const OpCase& c, const NormNoiseAttrs& a) {
  const Results got = run_tested(c), expected = run_reference(c);
  const double s = 2 * (1 + a.n_std + 6 * a.r_std) + 29 * a.r_std, m = 4 * (a.n_mean + a.r_mean);
  const Tensor weights = random_normal(c.inputs[0].shape(), 900);
  check_within(got.at("y0"), expected.at("y0"), [&](auto i) {
    return kEps * (s * std::abs(c.inputs[0].at(i)) + m + std::abs(expected.at("y0").at(i)));
  });
  check_within(got.at("d0"), expected.at("d0"), [&](auto i) {
    return kEps * (s * std::abs(weights.at(i)) + 2 * std::abs(expected.at("d0").at(i)));
  });
}

TEST_CASE("backend norm_noise: every width, tokens and images" * doctest::test_suite("slow")) {
  const NormNoiseAttrs rows[] = {{.seed = 42, .stream = 3}, {2, 3, 1, 1, -7, 0xFFFFFFFFll}};
  for_each_target([&] {
    for (const NormNoiseAttrs& attrs : rows) {
      for (const std::int64_t n : kSizes) {
        CAPTURE(n);
        check_noise(noise_case({n, 3}, attrs), attrs);
        NormNoiseAttrs sequences = attrs;
        sequences.positions = n;
        if (n < 5000) check_noise(noise_case({2 * n, 3}, sequences), sequences);
        check_noise(noise_case({4, n}, attrs, true), attrs);
        if (n < 5000) check_noise(noise_case({2, n, 3, 3}, attrs), attrs);
      }
    }
  });
}

TEST_CASE("backend norm_noise: results do not depend on the thread count") {
  check_thread_counts(noise_case({1003, 101}, {}));
  check_thread_counts(noise_case({1003, 101}, {}, true));
  check_thread_counts(noise_case({33, 17, 13, 11}, {}));
}

TEST_CASE("backend norm_noise: no channels") {
  OpCase c = noise_case({3, 0}, {});
  CHECK(run_tested(c).at("y0").elements() == 0);
}

}  // namespace
}  // namespace keel::test
