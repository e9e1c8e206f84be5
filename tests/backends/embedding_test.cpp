// Embedding lookup: exactly what the contract says.
#include "src/ops/embedding.h"

#include <type_traits>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

OpCase case_of(std::int64_t vocabulary, std::int64_t width, std::int64_t ids,
               std::int64_t padding_id) {
  OpCase c;
  c.inputs.push_back(random_f32({vocabulary, width}, 1));
  Tensor numbers(DType::kI32, {ids});
  const Philox random(4, 2);
  std::uint64_t i = 0;
  for (std::int32_t& id : numbers.as<std::int32_t>()) {
    id = std::int32_t(random.below(i++, std::uint32_t(vocabulary)));
  }
  c.inputs.push_back(std::move(numbers));
  c.build = [padding_id](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::embedding(g, v[0], v[1], padding_id)};
  };
  return c;
}

// dtable added up in T in the order of the ids, as the contract has it.
template <class T>
Tensor gradient_in_order(const OpCase& c, std::int64_t padding_id) {
  const Shape table = c.inputs[0].shape();
  const auto ids = c.inputs[1].as<std::int32_t>();
  const std::int64_t width = table[1];
  const Tensor dy = random_normal({std::int64_t(ids.size()), width}, 900).to(DType::kF32);
  const float* gradient = dy.as<float>().data();
  Tensor dtable(std::is_same_v<T, float> ? DType::kF32 : DType::kF64, table);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= table[0] || (padding_id >= 0 && ids[i] == padding_id)) continue;
    T* sum = dtable.as<T>().data() + ids[i] * width;
    for (std::int64_t k = 0; k < width; ++k) sum[k] += gradient[std::int64_t(i) * width + k];
  }
  return dtable;
}

void check_gradient(const Tensor& got, const OpCase& c, std::int64_t padding_id) {
  const bool is_float = got.dtype() == DType::kF32;  // what the backend stores
  check_within(
      got,
      is_float ? gradient_in_order<float>(c, padding_id) : gradient_in_order<double>(c, padding_id),
      [](auto) { return 0.0; });
}

void check_embedding(const OpCase& c, std::int64_t padding_id) {
  const Results got = run_tested(c), expected = run_reference(c);
  check_within(got.at("y0"), expected.at("y0"), [](auto) { return 0.0; });
  check_gradient(got.at("d0"), c, padding_id);
}

TEST_CASE("backend embedding: rows and gradients at every width" * doctest::test_suite("slow")) {
  for_each_target([] {
    for (const std::int64_t width : kSizes) {
      CAPTURE(width);
      const std::int64_t ids = width > 1000 ? 5 : 100;
      check_embedding(case_of(17, width, ids, -1), -1);
      check_embedding(case_of(17, width, ids, 3), 3);
    }
    check_embedding(case_of(1, 65, 5000, -1), -1);
    check_embedding(case_of(3000, 64, 10, 0), 0);
  });
}

TEST_CASE("backend embedding: ids outside of the table give NaN and no gradient") {
  for (const std::int64_t padding_id : {-1, 9}) {
    OpCase c = case_of(4, 5, 6, padding_id);
    std::int32_t* ids = c.inputs[1].as<std::int32_t>().data();
    ids[1] = -1;
    ids[2] = 4;
    ids[3] = 2000000000;
    ids[4] = 9;
    const Results got = run_tested(c), expected = run_reference(c);
    check_within(got.at("y0"), expected.at("y0"), [](auto) { return 0.0; });
    CHECK(std::isnan(got.at("y0").at(5)));
    check_gradient(got.at("d0"), c, padding_id);
  }
}

}  // namespace
}  // namespace keel::test
