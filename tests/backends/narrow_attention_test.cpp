// Attention and relative attention of bf16 factors against the judge, which rounds as kernels do.
#include "frontend/compare/cases/op_cases.h"
#include "src/ops/attention.h"
#include "src/ops/elementwise.h"
#include "src/ops/relative_attention.h"
#include "tests/backends/kernel_checks.h"
#include "tests/support/each_bf16.h"

namespace keel::test {
namespace {

struct AttentionSizes {
  std::int64_t batch, queries, keys, heads, width;
  bool causal = false;
  double p = 0, scale = 0;
};

using Make = std::function<Value(const Shape&)>;

std::vector<Value> attend(Graph& g, const AttentionSizes& s, const RandomKey& key,
                          const Make& make) {
  const auto factor = [&](std::int64_t length) {
    return ops::cast(g, make({s.batch, length, s.heads * s.width}), DType::kBF16);
  };
  ops::AttentionOperands of{.q = factor(s.queries), .k = factor(s.keys), .v = factor(s.keys)};
  if (s.p > 0) of.step = key.step, of.first_row = key.first_row;
  return {
      ops::attention(g, of, {.heads = s.heads, .scale = s.scale, .causal = s.causal, .p = s.p})};
}

struct RelativeSize {
  std::int64_t batch, queries, keys, distances, heads, width, window = 0;
  bool fills = false;  // rows with different parts of the memory
};

std::vector<Value> attend(Graph& g, const RelativeSize& s, Value filled, const Make& make) {
  const auto factor = [&](Shape shape) { return ops::cast(g, make(shape), DType::kBF16); };
  const std::int64_t d = s.heads * s.width;
  const Shape q{s.batch, s.queries, d}, k{s.batch, s.keys, d};
  std::vector<Value> inputs;
  for (const Shape& shape : {q, q, k, k, Shape{s.distances, d}}) inputs.push_back(factor(shape));
  inputs.push_back(filled);
  return {g.add(kRelativeAttention, inputs,
                RelativeAttentionAttrs{.heads = s.heads, .window = s.window})};
}

bool runs_narrow_attention() {
  Graph g;
  attend(g, AttentionSizes{1, 2, 2, 1, 2}, {}, [&](const Shape& shape) {
    return g.input(g.unique_name("x"), {DType::kF32, shape});
  });
  return make_backend(default_backend(), {1})->prepare({g, g.node(g.size() - 1)}).refusal.empty();
}

void check_narrow(const AttentionSizes& s) {
  CAPTURE(s.queries);
  CAPTURE(s.keys);
  CAPTURE(s.width);
  CaseBuilder d;
  d.differentiate(
      attend(d.graph, s, key_of(d), [&](const Shape& shape) { return d.normal(shape); }));
  check_agrees(d);
}

void check_narrow(const RelativeSize& s) {
  CAPTURE(s.queries);
  CAPTURE(s.keys);
  CAPTURE(s.width);
  CaseBuilder d;
  const Value filled = s.fills ? d.below({s.batch}, s.keys - s.queries + 1) : Value{};
  d.differentiate(attend(d.graph, s, filled, [&](const Shape& shape) { return d.normal(shape); }));
  check_agrees(d);
}

TEST_CASE("backend bf16 attention: heads of every width, tiles whole and not, masks, dropout") {
  const EachBf16 each;
  if (!runs_narrow_attention()) return;
  for (const AttentionSizes& s : {AttentionSizes{2, 3, 5, 2, 1},
                                  {1, 33, 20, 2, 15},
                                  {2, 16, 16, 4, 32},
                                  {1, 34, 40, 2, 65},
                                  {1, 10, 9, 1, 256},
                                  {1, 2, 129, 1, 8},
                                  {1, 40, 300, 2, 8, false, 0, 3},
                                  {2, 66, 66, 2, 32, true},
                                  {1, 40, 24, 1, 16, true},
                                  {1, 34, 140, 2, 24, false, 0.3},
                                  {2, 9, 7, 1, 4, false, 0, 100}}) {
    check_narrow(s);
  }
}

TEST_CASE("backend bf16 relative attention: widths, tiles, windows, memories that are not full") {
  const EachBf16 each;
  if (!runs_narrow_attention()) return;
  for (const RelativeSize& s : {RelativeSize{2, 3, 5, 5, 2, 1},
                                {2, 17, 18, 18, 2, 4},
                                {1, 20, 33, 9, 2, 15},
                                {2, 34, 40, 40, 1, 32, 11},
                                {2, 33, 161, 161, 1, 10, 0, true},
                                {9, 5, 140, 140, 2, 6, 90, true},
                                {1, 10, 19, 19, 1, 256}}) {
    check_narrow(s);
  }
}

TEST_CASE("backend bf16 attention: the number of threads changes no bit") {
  const EachBf16 each;
  if (!runs_narrow_attention()) return;
  OpCase c;
  const AttentionSizes s{3, 70, 150, 2, 24};
  for (const std::int64_t length : {s.queries, s.keys, s.keys}) {
    c.inputs.push_back(random_f32({s.batch, length, s.heads * s.width}, std::uint32_t(length)));
  }
  c.build = [s](Graph& g, const std::vector<Value>& v) {
    std::size_t next = 0;
    return attend(g, s, {}, [&](const Shape&) { return v[next++]; });
  };
  check_thread_counts(c);
  const RelativeSize r{9, 40, 150, 150, 2, 24};
  OpCase relative;
  const Shape shapes[] = {{9, 40, 48}, {9, 40, 48}, {9, 150, 48}, {9, 150, 48}, {150, 48}};
  for (const Shape& shape : shapes) {
    relative.inputs.push_back(random_f32(shape, std::uint32_t(relative.inputs.size())));
  }
  relative.build = [r](Graph& g, const std::vector<Value>& v) {
    std::size_t next = 0;
    return attend(g, r, {}, [&](const Shape&) { return v[next++]; });
  };
  check_thread_counts(relative);
}

}  // namespace
}  // namespace keel::test
