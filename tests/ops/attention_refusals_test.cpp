// Refusals of attention.
#include <doctest/doctest.h>

#include <cmath>

#include "src/ops/attention.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

// The operands of a case that is right, and how it is spoilt.
using Spoil = void (*)(std::vector<TensorType>&, AttentionAttrs&);

TEST_CASE("attention: refusals") {
  const std::pair<Spoil, const char*> rows[] = {
      {[](auto& in, auto&) { in[0].dtype = DType::kI32; }, "q: expected a floating type, got i32"},
      {[](auto& in, auto&) {
         in[0].shape = {3, 8};
       },
       "q: expected (b, tq, d), got (3, 8)"},
      {[](auto& in, auto&) {
         in[1].shape = {5, 8};
       },
       "k: expected (2, tk, 8), got (5, 8)"},
      {[](auto& in, auto&) {
         in[1].shape = {3, 5, 8};
       },
       "k: expected (2, tk, 8), got (3, 5, 8)"},
      {[](auto& in, auto&) {
         in[1].shape = {2, 5, 4};
       },
       "k: expected (2, tk, 8), got (2, 5, 4)"},
      {[](auto& in, auto&) {
         in[2].shape = {2, 4, 8};
       },
       "v: expected (2, 5, 8), got (2, 4, 8)"},
      {[](auto& in, auto&) { in[1].dtype = DType::kF64; }, "k: expected f32, got f64"},
      {[](auto& in, auto&) { in[2].dtype = DType::kF64; }, "v: expected f32, got f64"},
      {[](auto& in, auto&) { in[3].dtype = DType::kF32; }, "key_mask: expected u8, got f32"},
      {[](auto& in, auto&) {
         in[3].shape = {2, 3};
       },
       "key_mask: expected (2, 5), got (2, 3)"},
      {[](auto& in, auto&) { in[4].dtype = DType::kF32; }, "step: expected i32, got f32"},
      {[](auto& in, auto&) { in[4].shape = {1}; }, "step: expected (), got (1)"},
      {[](auto& in, auto&) { in[5].dtype = DType::kF32; }, "first_row: expected i32, got f32"},
      {[](auto& in, auto&) { in[5].shape = {2}; }, "first_row: expected (), got (2)"},
      {[](auto&, auto& a) { a.heads = 3; }, "heads: expected a divisor of the 8 features, got 3"},
      {[](auto&, auto& a) { a.heads = 0; }, "heads: expected a divisor of the 8 features, got 0"},
      {[](auto&, auto& a) { a.scale = INFINITY; }, "scale: expected a finite number, got inf"},
      {[](auto&, auto& a) { a.p = 1; }, "p: expected in [0, 1), got 1"},
      {[](auto&, auto& a) { a.p = -0.1; }, "p: expected in [0, 1), got -0.1"}};
  for (const auto& [spoil, part] : rows) {
    std::vector<TensorType> in{{DType::kF32, {2, 3, 8}}, {DType::kF32, {2, 5, 8}},
                               {DType::kF32, {2, 5, 8}}, {DType::kU8, {2, 5}},
                               {DType::kI32, {}},        {DType::kI32, {}}};
    AttentionAttrs attrs{.heads = 2, .p = 0.5};
    spoil(in, attrs);
    const Build build = [&](Graph& g, const std::vector<Value>& v) {
      return std::vector{g.add(kAttention, v, attrs)};
    };
    check_op_refused(in, build, "attention", part);
  }
}

// Attention over `length` queries and keys.
void check_size_refused(std::int64_t length, std::int64_t features, const AttentionAttrs& attrs,
                        const char* part) {
  const TensorType x{DType::kF32, {1, length, features}}, number{DType::kI32, {}};
  const Build build = [&](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::attention(g, {v[0], v[0], v[0], {}, v[1], v[1]}, attrs)};
  };
  check_op_refused({x, number}, build, "attention", part);
}

TEST_CASE("attention: refusals of sizes") {
  check_size_refused(2, 257, {}, "width of a head: expected at most 256, got 257");
  check_size_refused(2, 0, {}, "heads: expected a divisor of the 0 features, got 1");
  check_size_refused(2, 65, {.heads = 65, .p = 0.1}, "heads: expected at most 64 with dropout");
  check_size_refused(16385, 1, {.p = 0.1}, "queries: expected at most 16384 with dropout");
  Graph g;
  const Value n = g.input("n", {DType::kI32, {}});
  const auto input = [&](const char* name, std::int64_t length) {
    return g.input(name, {DType::kF32, {1, length, 1}});
  };
  const Value q = input("q", 1), k = input("k", 16385);
  check_refused(
      [&] {
        ops::attention(g, {q, k, k, {}, n, n}, {.p = 0.1});
      },
      "[attention] keys", "expected at most 16384 with dropout, got 16385");
  CHECK(ops::attention(g, {q, k, k}, {}).valid());
  check_refused(
      [&] {
        g.add(kAttention, {q, k, k, {}, n, {}}, AttentionAttrs{});
      },
      "[attention] step", "expected none without dropout");
}

TEST_CASE("attention: lse has no gradient") {
  const Build build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::attention(g, {v[0], v[0], v[0]}, {}).at(AttentionOutput::kLse)};
  };
  OpCase c;
  c.inputs.push_back(random_normal({1, 2, 3}, 1));
  c.build = build;
  check_refused([&] { run_reference(c); }, "[attention] lse", "got a gradient");
}

}  // namespace
}  // namespace keel::test
