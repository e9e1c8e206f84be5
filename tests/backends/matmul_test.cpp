// Matrix products against the reference backend.
#include "src/ops/matmul.h"

#include <cmath>
#include <cstring>

#include "backends/backend_config.h"
#ifdef KEEL_ONEDNN
#include "backends/onednn/primitives.h"
#include "backends/onednn/simd/target.h"
#endif
#include "src/ops/elementwise.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

struct Product {
  std::vector<std::int64_t> batch;
  std::int64_t m, k, n;
  int flags;

  bool has(int bit) const { return (flags & bit) != 0; }
  bool transpose_a() const { return has(1); }
  bool transpose_b() const { return has(2); }
  bool bias() const { return has(4); }
  bool shared_b() const { return has(8) || batch.empty(); }
  std::int64_t batches() const { return Shape(batch).elements(); }
  Shape stacked(std::int64_t rows, std::int64_t cols) const {
    std::vector<std::int64_t> sizes = batch;
    sizes.insert(sizes.end(), {rows, cols});
    return Shape(sizes);
  }
  std::string text() const {
    return fmt::format("batch={} m={} k={} n={} transpose_a={} transpose_b={} bias={} shared_b={}",
                       Shape(batch).text(), m, k, n, transpose_a(), transpose_b(), bias(),
                       shared_b());
  }
};

OpCase case_of(const Product& p) {
  OpCase c;
  c.inputs.push_back(random_f32(p.transpose_a() ? p.stacked(p.k, p.m) : p.stacked(p.m, p.k), 1));
  const Shape one = p.transpose_b() ? Shape{p.n, p.k} : Shape{p.k, p.n};
  c.inputs.push_back(random_f32(p.shared_b() ? one : p.stacked(one[0], one[1]), 2));
  if (p.bias()) c.inputs.push_back(random_f32({p.n}, 3));
  c.build = [p](Graph& g, const std::vector<Value>& v) {
    const Value bias = p.bias() ? v[2] : Value{};
    return std::vector{ops::matmul(g, v[0], v[1], {bias, p.transpose_a(), p.transpose_b()})};
  };
  return c;
}

void check_product(const Product& p) {
  const std::string text = p.text();
  CAPTURE(text);
  check_agrees(case_of(p));
}

TEST_CASE("backend matmul: every combination of flags, with gradients") {
  for (int flags = 0; flags < 8; ++flags) check_product({{}, 33, 17, 20, flags});
  for (int flags = 0; flags < 16; ++flags) check_product({{2, 3}, 5, 7, 9, flags});
}

TEST_CASE("backend matmul: sizes round those of registers and blocks") {
  const std::int64_t sizes[][3] = {{1, 1, 1},    {1, 64, 1},    {1, 1, 17},     {17, 1, 1},
                                   {1, 129, 65}, {65, 129, 1},  {2, 3, 1000},   {15, 16, 17},
                                   {47, 31, 63}, {64, 64, 64},  {100, 257, 10}, {3, 2049, 5},
                                   {10, 1, 10},  {511, 9, 130}, {128, 784, 48}};
  int flags = 0;
  for (const auto& [m, k, n] : sizes) check_product({{}, m, k, n, flags++ % 8});
  for (int f : {0, 1, 2, 3}) check_product({{4}, 1, 1, 1, f});
  for (int f : {0, 1, 2, 3, 9}) check_product({{2}, 1, 12, 1, f});
  for (int f : {0, 1, 2, 3, 9}) check_product({{1}, 6, 1, 5, f});
}

TEST_CASE("backend matmul: no elements, and an inner size of 0") {
  for (int flags = 0; flags < 16; ++flags) {
    check_product({{2}, 3, 0, 4, flags});
    check_product({{2}, 0, 3, 4, flags});
    check_product({{0}, 2, 3, 4, flags});
    check_product({{}, 2, 3, 0, flags});
  }
}

#ifdef KEEL_ONEDNN
// For many rows b is copied into another order first, for few it is not. oneDNN's kernels for AVX2
// do not keep a row's bits, with or without a copy.
TEST_CASE("backend matmul: with AVX-512 a row's bits do not depend on how many rows there are" *
          doctest::test_suite("slow")) {
  const auto backend = make_backend("onednn", {2});  // which KEEL_ISA may have limited
  if (!onednn::simd_target().starts_with("AVX3")) return;
  constexpr std::int64_t kFew = 8, kInner = 530, kColumns = 1024;
  const auto y = [&](std::int64_t rows) {
    const OpCase c = case_of({{}, rows, kInner, kColumns, 4});
    return std::move(run_case(*backend, c, DType::kF32).at("y0"));
  };
  const Tensor few = y(kFew);
  for (const std::int64_t rows : {255, 256, 300}) {
    CAPTURE(rows);
    CHECK(std::memcmp(y(rows).data(), few.data(), std::size_t(few.bytes())) == 0);
  }
}
#endif

// relu(a b + bias) as one node.
template <class... Tensors>
OpCase relu_case(Tensors... inputs) {
  OpCase c;
  (c.inputs.push_back(std::move(inputs)), ...);
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value bias = v.size() > 2 ? v[2] : Value{};
    return std::vector{
        g.add(kMatmul, {v[0], v[1], bias}, MatmulAttrs{.activation = Activation::kRelu})};
  };
  return c;
}

// With AVX-512 oneDNN gives parts of such sums to threads.
TEST_CASE("backend matmul: a long sum has the same bits for any number of threads") {
  for (const std::int64_t k : {2047, 2048, 4100}) {
    for (const std::int64_t n : {5, 64, 448, 449}) {
      OpCase c = case_of({{}, 33, k, n, 1});
      CAPTURE(k);
      CAPTURE(n);
      c.gradients = false;
      check_thread_counts(c);
    }
  }
}

TEST_CASE("backend matmul: relu after the bias") {
  check_agrees(relu_case(random_f32({21, 30}, 1), random_f32({30, 19}, 2), random_f32({19}, 3)));
  check_agrees(relu_case(random_f32({2, 7, 30}, 1), random_f32({2, 30, 5}, 2)));
  check_agrees(
      relu_case(Tensor(DType::kF64, {3, 0}), Tensor(DType::kF64, {0, 4}), random_f32({4}, 3)));
}

TEST_CASE("backend matmul: relu keeps a NaN") {
  Tensor a = random_f32({4, 8}, 1);
  a.as<double>()[8] = NAN;
  check_agrees(relu_case(std::move(a), random_f32({8, 5}, 2), random_f32({5}, 3)));
}

#ifdef KEEL_ONEDNN
TEST_CASE("backend: what oneDNN has no primitive for is refused with its reason") {
  const Prepared prepared = onednn::make_matmul({.m = -1, .k = 2, .n = 3});
  CHECK(prepared.refusal.find("oneDNN " + onednn::library_version() + ": could not") == 0);
  CHECK_FALSE(prepared.bind);
}
#endif

TEST_CASE("backend matmul: a relu of the graph becomes a part of it") {
  OpCase c;
  c.inputs.push_back(random_f32({12, 10}, 1));
  c.inputs.push_back(random_f32({10, 14}, 2));
  c.inputs.push_back(random_f32({14}, 3));
  c.optimize = true;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::relu(g, ops::matmul(g, v[0], v[1], {.bias = v[2]}))};
  };
  check_agrees(c);
  const Results got = run_tested(c);
  for (std::int64_t e = 0; e < got.at("y0").elements(); ++e) {
    CHECK_FALSE(std::signbit(got.at("y0").at(e)));  // 0, not -0, as from an op of its own
  }
}

}  // namespace
}  // namespace keel::test
