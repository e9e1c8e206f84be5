#include "tests/support/attention_step.h"

#include "backends/backends.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::test {

AttentionStep AttentionCase::step() const {
  const auto normal = [](const Shape& shape, std::uint32_t stream) {
    return random_normal(shape, stream).to(DType::kF32).to(DType::kF64);
  };
  const Shape q{b, queries, heads * width}, k{b, keys, heads * width};
  AttentionStep step{normal(q, 1),
                     normal(k, 2),
                     normal(k, 3),
                     normal(q, 4),
                     {.heads = heads, .causal = causal, .p = p, .seed = -5}};
  if (masks) step.key_mask = random_key_mask(b, keys);
  step.first_row = 77;
  return step;
}

Tensor random_key_mask(std::int64_t b, std::int64_t keys) {
  Tensor mask(DType::kU8, {b, keys});
  const Philox random(7, 7);
  for (std::int64_t e = 0; e < b * keys; ++e) {
    const bool is_padding = e % keys >= keys - e / keys;
    mask.as<std::uint8_t>()[std::size_t(e)] = !is_padding && random.below(std::uint64_t(e), 3) > 0;
  }
  return mask;
}

Results run_attention(Backend& backend, const AttentionStep& step, DType dtype) {
  Graph g;
  Feeds feeds;
  const auto input = [&](const char* name, const Tensor& value) {
    feeds[name] = value.clone();
    const bool floats = is_floating(value.dtype());
    return g.input(name, {floats ? dtype : value.dtype(), value.shape()});
  };
  ops::AttentionOperands in{input("q", step.q), input("k", step.k), input("v", step.v)};
  if (step.key_mask.shape().rank() > 0) in.key_mask = input("key_mask", step.key_mask);
  if (step.attrs.p > 0) {
    in.step = input("step", Tensor::of<std::int32_t>({}, {step.step}));
    in.first_row = input("first_row", Tensor::of<std::int32_t>({}, {step.first_row}));
  }
  const Value y = ops::attention(g, in, step.attrs);
  const Value loss = ops::sum(g, ops::mul(g, y, input("dy", step.dy)));
  const std::vector<Value> d = gradient(g, loss, std::vector{in.q, in.k, in.v});
  g.mark_output("y", y);
  g.mark_output("lse", y.at(AttentionOutput::kLse));
  g.mark_output("dq", d[0]);
  g.mark_output("dk", d[1]);
  g.mark_output("dv", d[2]);
  return run_graph(backend, g, feeds);
}

Results run_tested(const AttentionStep& step, int threads) {
  return run_attention(*make_backend(default_backend(), {threads}), step);
}

}  // namespace keel::test
