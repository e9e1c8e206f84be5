// Conditions that must not change a bit of attention: padding, the batch that a row is in, threads.
#include <algorithm>

#include "src/ops/attention.h"
#include "tests/backends/kernel_checks.h"
#include "tests/support/attention_step.h"

namespace keel::test {
namespace {

// Elements [from, from + count) of axis 1 and all of axis 0 of x (b, length, ...) in place of those
// of y (b, other length, ...) from `to` on.
struct Move {
  std::int64_t from, count, to;
};
void move(const Tensor& x, Tensor& y, const Move& m) {
  const std::int64_t length = x.shape()[1], other = y.shape()[1];
  const std::int64_t bytes = x.bytes() / (x.shape()[0] * length);
  for (std::int64_t row = 0; row < x.shape()[0]; ++row) {
    std::memcpy(y.data() + (row * other + m.to) * bytes, x.data() + (row * length + m.from) * bytes,
                std::size_t(m.count * bytes));
  }
}

void check_same_bits(const Tensor& got, const Tensor& expected) {
  REQUIRE(got.type() == expected.type());
  CHECK(std::memcmp(got.data(), expected.data(), std::size_t(got.bytes())) == 0);
}

// The step with `more` queries and keys after its own: dy is 0 there, and keys are masked. All
// that are hold `garbage`.
AttentionStep padded(const AttentionStep& step, std::int64_t more, double garbage) {
  AttentionStep wide;
  const auto lengthen = [&](const Tensor& x, double value) {
    const std::int64_t length = x.shape()[1];
    Tensor y(x.dtype(), x.shape().with(1, length + more));
    if (is_floating(x.dtype())) std::ranges::fill(y.as<double>(), value);
    move(x, y, {0, length, 0});
    return y;
  };
  wide.q = lengthen(step.q, 0.5), wide.dy = lengthen(step.dy, 0);
  wide.k = lengthen(step.k, 0), wide.v = lengthen(step.v, 0);
  wide.key_mask = lengthen(step.key_mask, 0);
  wide.attrs = step.attrs;
  const std::int64_t d = step.k.shape().back();
  for (std::int64_t e = 0; e < wide.k.elements(); ++e) {
    if (wide.key_mask.at(e / d) != 0) continue;
    wide.k.as<double>()[std::size_t(e)] = garbage;
    wide.v.as<double>()[std::size_t(e)] = -garbage;
  }
  return wide;
}

void check_padding(const AttentionCase& row) {
  AttentionStep step = row.step();
  step.first_row = 0;
  const Results expected = run_tested(step);
  for (const std::int64_t more : {1, 7, 16, 100, 300}) {
    for (const double garbage : {1.0, 3e38}) {
      CAPTURE(more);
      CAPTURE(garbage);
      const Results got = run_tested(padded(step, more, garbage));
      for (const auto& [name, value] : expected) {
        CAPTURE(name);
        Tensor own(value.type());
        const std::size_t bytes = size_of(value.dtype());
        if (name != "lse") {
          move(got.at(name), own, {0, value.shape()[1], 0});
        } else {  // (b, heads, queries): heads as rows, queries as what is moved
          for (std::int64_t i = 0; i < value.elements(); ++i) {
            const std::int64_t at = i / row.queries * (row.queries + more) + i % row.queries;
            std::memcpy(own.data() + i * bytes, got.at(name).data() + at * bytes, bytes);
          }
        }
        check_same_bits(own, value);
      }
    }
  }
}

TEST_CASE("backend attention: padding changes no bit") {
  for_each_target([] {
    check_padding({.b = 2, .queries = 5, .keys = 7, .heads = 2, .width = 8, .masks = true});
    check_padding(
        {.b = 2, .queries = 31, .keys = 127, .heads = 1, .width = 3, .masks = true, .p = 0.3});
    check_padding({.b = 2,
                   .queries = 40,
                   .keys = 40,
                   .heads = 2,
                   .width = 32,
                   .masks = true,
                   .causal = true,
                   .p = 0.2});
  });
}

// Rows [first, first + count) of every tensor of a step.
AttentionStep rows_of(const AttentionStep& step, std::int64_t first, std::int64_t count) {
  const auto take = [&](const Tensor& x) {
    Tensor y(x.dtype(), x.shape().with(0, count));
    const std::int64_t bytes = x.bytes() / x.shape()[0];
    std::memcpy(y.data(), x.data() + first * bytes, std::size_t(count * bytes));
    return y;
  };
  AttentionStep part{take(step.q),  take(step.k), take(step.v),
                     take(step.dy), step.attrs,   take(step.key_mask)};
  part.first_row = std::int32_t(step.first_row + first);
  return part;
}

TEST_CASE("backend attention: a row does not depend on the batch it is in") {
  const AttentionStep step = AttentionCase{.b = 5,
                                           .queries = 35,
                                           .keys = 20,
                                           .heads = 2,
                                           .width = 16,
                                           .masks = true,
                                           .causal = true,
                                           .p = 0.4}
                                 .step();
  const Results all = run_tested(step);
  for (const auto& [first, count] : {std::pair{0, 2}, {2, 1}, {3, 2}}) {
    for (const auto& [name, value] : run_tested(rows_of(step, first, count))) {
      CAPTURE(name);
      const std::int64_t bytes = value.bytes() / count;
      CHECK(std::memcmp(value.data(), all.at(name).data() + first * bytes,
                        std::size_t(value.bytes())) == 0);
    }
  }
}

TEST_CASE("backend attention: results do not depend on the thread count") {
  const AttentionStep step =
      AttentionCase{
          .b = 3, .queries = 70, .keys = 140, .heads = 3, .width = 33, .masks = true, .p = 0.1}
          .step();
  const Results expected = run_tested(step, 1);
  for (int threads : {2, 3, 7}) {
    CAPTURE(threads);
    for (const auto& [name, value] : run_tested(step, threads)) {
      CAPTURE(name);
      check_same_bits(value, expected.at(name));
    }
  }
}

}  // namespace
}  // namespace keel::test
