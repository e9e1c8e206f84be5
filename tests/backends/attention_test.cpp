// Attention against the reference backend, within the bounds of rounding.
#include "src/ops/attention.h"

#include "tests/backends/kernel_checks.h"
#include "tests/support/attention_step.h"

namespace keel::test {
namespace {

// y of a step, and its gradients; a comparison sees all outputs of a node.
void check_step(const AttentionStep& step) {
  OpCase c;
  for (const Tensor* t : {&step.q, &step.k, &step.v}) c.inputs.push_back(t->clone());
  c.inputs.push_back(Tensor::of<std::int32_t>({}, {step.step}));
  c.inputs.push_back(Tensor::of<std::int32_t>({}, {step.first_row}));
  const bool has_mask = step.key_mask.shape().rank() > 0, is_random = step.attrs.p > 0;
  if (has_mask) c.inputs.push_back(step.key_mask.clone());
  c.build = [&](Graph& g, const std::vector<Value>& v) {
    ops::AttentionOperands of{v[0], v[1], v[2]};
    if (has_mask) of.key_mask = v[5];
    if (is_random) of.step = v[3], of.first_row = v[4];
    return std::vector{ops::attention(g, of, step.attrs)};
  };
  check_agrees(c);
}

void check_rows(std::initializer_list<AttentionCase> rows) {
  for_each_target([&] {
    for (const AttentionCase& row : rows) {
      const AttentionStep step = row.step();
      const std::string sizes = step.q.shape().text() + step.k.shape().text();
      CAPTURE(sizes);
      CAPTURE(Attrs(step.attrs).text());
      CAPTURE(row.masks);
      check_step(step);
    }
  });
}

TEST_CASE("backend attention: heads of every width") {
  check_rows({{2, 3, 5, 2, 1},
              {1, 9, 6, 3, 3},
              {2, 17, 18, 2, 4},
              {1, 33, 20, 2, 15},
              {2, 16, 16, 4, 32},
              {1, 20, 35, 1, 33},
              {1, 34, 40, 2, 64},
              {1, 18, 17, 1, 65},
              {1, 17, 33, 1, 100},
              {1, 19, 34, 1, 128},
              {1, 9, 21, 1, 129},
              {2, 10, 9, 1, 256}});
}

TEST_CASE("backend attention: tiles of keys and queries, whole and not") {
  check_rows({{1, 1, 1, 2, 8},
              {1, 1, 128, 1, 8},
              {1, 2, 129, 1, 8},
              {1, 31, 127, 1, 8},
              {1, 32, 256, 1, 8},
              {1, 65, 300, 2, 8},
              {1, 128, 3, 1, 8},
              {1, 7, 513, 1, 16}});
}

TEST_CASE("backend attention: masks") {
  check_rows({{3, 5, 7, 2, 8, true},
              {2, 33, 70, 2, 32, true},
              {2, 40, 260, 1, 16, true},
              {2, 12, 40, 2, 64, true},
              {1, 20, 20, 1, 128, true},
              {1, 12, 20, 1, 256, true}});
}

TEST_CASE("backend attention: causal") {
  check_rows({{1, 5, 5, 2, 8, false, true},
              {2, 66, 66, 2, 32, false, true},
              {1, 40, 170, 1, 64, false, true},
              {1, 170, 40, 1, 16, false, true},
              {1, 40, 24, 1, 128, false, true},
              {1, 25, 20, 1, 256, false, true},
              {3, 50, 50, 2, 16, true, true},
              {2, 140, 140, 1, 8, true, true}});
}

TEST_CASE("backend attention: dropout") {
  check_rows({{1, 5, 7, 2, 8, false, false, 0.5},
              {2, 33, 35, 3, 32, false, false, 0.1},
              {1, 34, 140, 2, 64, false, false, 0.3},
              {1, 20, 20, 2, 128, false, false, 0.3},
              {1, 11, 18, 2, 256, false, false, 0.3},
              {3, 40, 45, 2, 16, true, true, 0.2},
              {2, 3, 3, 64, 1, true, true, 0.9}});
}

TEST_CASE("backend attention: a probability whose number is p itself is kept") {
  AttentionStep step =
      AttentionCase{.b = 1, .queries = 3, .keys = 6, .heads = 1, .width = 4}.step();
  const Philox random(std::uint64_t(step.attrs.seed), stream_of("attention"), 3);
  step.attrs.p = (attention_bits(random, 77, 0, 2, 5) >> 8) * 0x1p-24;
  check_step(step);
}

TEST_CASE("backend attention: ticks and rows at their ends") {
  AttentionStep step =
      AttentionCase{.b = 3, .queries = 4, .keys = 6, .heads = 2, .width = 4, .p = 0.5}.step();
  for (const std::int32_t number : {0, -1, std::numeric_limits<std::int32_t>::max()}) {
    step.step = step.first_row = number;
    check_step(step);
  }
}

TEST_CASE("backend attention: scores of 1e4") {
  for (const bool causal : {false, true}) {
    AttentionStep step =
        AttentionCase{.b = 2, .queries = 35, .keys = 140, .heads = 2, .width = 8, .causal = causal}
            .step();
    step.attrs.scale = 1e4 / 8;
    for_each_target([&] { check_step(step); });
    for (const auto& [name, value] : run_tested(step)) {
      CAPTURE(name);
      for (std::int64_t e = 0; e < value.elements(); ++e) REQUIRE(std::isfinite(value.at(e)));
    }
  }
}

TEST_CASE("backend attention: a row that sees nothing, and no rows at all") {
  AttentionStep step =
      AttentionCase{.b = 2, .queries = 40, .keys = 9, .heads = 2, .width = 8}.step();
  step.key_mask = Tensor(DType::kU8, {2, 9});
  std::fill_n(step.key_mask.as<std::uint8_t>().begin(), 9, std::uint8_t{1});
  check_step(step);
  for (const auto& [name, value] : run_tested(step)) {
    CAPTURE(name);
    const std::int64_t half = value.elements() / 2;
    for (std::int64_t e = half; e < 2 * half; ++e) REQUIRE(value.at(e) == 0);
  }
  check_step(AttentionCase{.b = 2, .queries = 3, .keys = 0, .heads = 1, .width = 4}.step());
  check_step(AttentionCase{.b = 0, .queries = 3, .keys = 5, .heads = 1, .width = 4}.step());
  check_step(AttentionCase{.b = 2, .queries = 0, .keys = 5, .heads = 1, .width = 4}.step());
}

TEST_CASE("backend attention: what is not a number stays in its row") {
  AttentionStep step =
      AttentionCase{.b = 3, .queries = 4, .keys = 6, .heads = 2, .width = 8}.step();
  step.q.as<double>()[4 * 16 + 1] = NAN;  // query 0 of row 1, in head 0
  const Results got = run_tested(step);
  for (const auto& [name, value] : got) {
    CAPTURE(name);
    const std::int64_t third = value.elements() / 3;
    for (std::int64_t e = 0; e < 3 * third; ++e) {
      if (e / third != 1) REQUIRE(std::isfinite(value.at(e)));
    }
  }
  CHECK(std::isnan(got.at("y").at(4 * 16)));
  CHECK(std::isnan(got.at("lse").at(8)));
  CHECK(std::isfinite(got.at("y").at(4 * 16 + 8)));
  CHECK(std::isfinite(got.at("y").at(5 * 16)));
}

}  // namespace
}  // namespace keel::test
