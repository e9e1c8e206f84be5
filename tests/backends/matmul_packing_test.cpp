// Products that share a matrix, which the passes may cut into panels for them.
#include <cstring>

#include "backends/backend_config.h"
#ifdef KEEL_ONEDNN
#include "backends/onednn/simd/target.h"
#endif
#include "src/graph/print.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/runtime/program.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

// Four products (m, k) (k, n) that share their second factor, which the passes may cut into panels.
struct SharedProducts {
  std::int64_t m, k, n;
  bool transpose_a, transpose_b;

  OpCase case_of(bool optimize) const {
    OpCase c;
    c.inputs.push_back(random_f32(transpose_b ? Shape{n, k} : Shape{k, n}, 1));
    c.inputs.push_back(random_f32({n}, 2));
    for (std::uint32_t i = 0; i < 4; ++i) {
      c.inputs.push_back(random_f32(transpose_a ? Shape{k, m} : Shape{m, k}, 3 + i));
    }
    c.optimize = optimize;
    c.gradients = false;
    c.build = [*this](Graph& g, const std::vector<Value>& v) {
      std::vector<Value> results;
      for (std::size_t i = 2; i < v.size(); ++i) {
        const Value y = ops::matmul(g, v[i], v[0], {v[1], transpose_a, transpose_b});
        results.push_back(ops::relu(g, y));
      }
      return results;
    };
    return c;
  }
  std::string text() const {
    return fmt::format("m={} k={} n={} transpose_a={} transpose_b={}", m, k, n, transpose_a,
                       transpose_b);
  }
};

// Sizes round those of panels, each read in every way.
std::vector<SharedProducts> shared_products() {
  std::vector<SharedProducts> result;
  const std::int64_t sizes[][3] = {{64, 1, 1},     {64, 15, 17},   {64, 16, 16},   {64, 17, 32},
                                   {64, 33, 48},   {64, 64, 63},   {64, 64, 64},   {64, 65, 65},
                                   {64, 128, 512}, {64, 512, 128}, {240, 64, 240}, {97, 400, 401}};
  for (const auto& [m, k, n] : sizes) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        result.push_back({m, k, n, transpose_a, transpose_b});
      }
    }
  }
  return result;
}

#ifdef KEEL_ONEDNN
TEST_CASE("backend matmul: cutting panels changes no bit, whatever the number of threads" *
          doctest::test_suite("slow")) {
  for (const SharedProducts& shared : shared_products()) {
    CAPTURE(shared.text());
    const Results expected =
        run_case(*make_backend("onednn", {1}), shared.case_of(false), DType::kF32);
    for (const int threads : {1, 2, 5}) {
      CAPTURE(threads);
      const Results got =
          run_case(*make_backend("onednn", {threads}), shared.case_of(true), DType::kF32);
      check_same_bytes(got, expected);
    }
  }
}

TEST_CASE("backend matmul: with AVX-512 a weight is cut, with AVX2 none is") {
  const auto backend = make_backend("onednn", {1});
  for (const bool transpose_b : {false, true}) {
    Graph g;
    const Value b = g.input("b", {DType::kF32, {48, 48}});
    for (const char* name : {"first", "second"}) {
      const Value a = g.input(name, {DType::kF32, {128, 48}});
      g.mark_output(fmt::format("y_{}", name), ops::matmul(g, a, b, {.transpose_b = transpose_b}));
    }
    const bool is_cut =
        print(optimized_for(*backend, g)).find("packed_columns=48") != std::string::npos;
    CHECK(is_cut == onednn::simd_target().starts_with("AVX3"));
  }
}

TEST_CASE("backend matmul: panels that oneDNN does not read are refused") {
  const auto backend = make_backend("onednn", {1});
  Graph g;
  const Value a = g.input("a", {DType::kF32, {64, 32}});
  for (const Shape& panels : {Shape{3, 32, 24}, Shape{1, 33, 64}, Shape{2, 48, 32}}) {
    CAPTURE(panels.text());
    const Value b = g.input("b" + panels.text(), {DType::kF32, panels});
    const Value y = g.add(kMatmul, {a, b, Value{}}, MatmulAttrs{.packed_columns = 64});
    CHECK(backend->prepare({g, g.node(y)}).refusal == "oneDNN reads other panels here, or none");
  }
}
#endif

}  // namespace
}  // namespace keel::test
