// The soft window against the judge, within what rounding may add.
#include "src/ops/attention_window.h"

#include <cmath>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

OpCase window_of(const AttentionWindowSizes& sizes, std::int64_t symbols) {
  OpCase c;
  c.inputs.push_back(random_f32({sizes.rows, 3 * sizes.bumps}, 1));
  c.inputs.push_back(random_f32({sizes.rows, sizes.bumps}, 2));
  Tensor text(DType::kI32, {sizes.rows, sizes.length});
  const Philox random(4, 2);
  std::uint64_t i = 0;
  for (std::int32_t& symbol : text.as<std::int32_t>()) {
    symbol = std::int32_t(random.below(i++, std::uint32_t(symbols + 1))) - 1;
  }
  c.inputs.push_back(std::move(text));
  c.build = [symbols](Graph& g, const std::vector<Value>& v) {
    const auto window = ops::attention_window(g, v[0], v[1], v[2], symbols);
    return std::vector{window.w, window.kappa, window.phi};
  };
  return c;
}

// Only the window in a graph, `wanted` saying which of its outputs have a gradient.
void check_window(const AttentionWindowSizes& sizes, std::int64_t symbols, int wanted) {
  check_sampled([&](CaseBuilder& d) {
    const Value components = d.normal({sizes.rows, 3 * sizes.bumps});
    const Value before = d.normal({sizes.rows, sizes.bumps});
    const Value text = d.below({sizes.rows, sizes.length}, symbols);
    const auto window = ops::attention_window(d.graph, components, before, text, symbols);
    const std::vector<Value> all{window.w, window.kappa, window.phi};
    d.differentiate(wanted == 3 ? all : std::vector{all[std::size_t(wanted)]});
  });
}

TEST_CASE("backend attention_window: lengths, numbers of bumps, shares of the gradient") {
  for_each_target([&] {
    for (const std::int64_t length : {1, 2, 15, 16, 17, 33, 90}) {
      for (const std::int64_t bumps : {1, 3, 10}) {
        for (int wanted = 0; wanted < 4; ++wanted) {
          CAPTURE(length);
          CAPTURE(bumps);
          CAPTURE(wanted);
          check_window({3, bumps, length}, 5, wanted);
        }
      }
    }
  });
}

TEST_CASE(
    "backend attention_window: padding adds nothing, and a symbol that is not there gives NaN") {
  OpCase c = window_of({7, 3, 21}, 6);
  Results got = run_tested(c), expected = run_reference(c);
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    const Tensor& other = got.at(name);
    for (std::int64_t i = 0; i < value.elements(); ++i) {
      // Far from a bump phi is less than a float can be.
      if (value.at(i) == 0) CHECK(other.at(i) == 0);
      if (std::abs(value.at(i)) > 1e-30) CHECK(other.at(i) != 0);
    }
  }
  c.inputs[2].as<std::int32_t>()[4] = 6;
  got = run_tested(c);
  expected = run_reference(c);
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    for (std::int64_t i = 0; i < value.elements(); ++i) {
      CHECK(std::isnan(got.at(name).at(i)) == std::isnan(value.at(i)));
    }
  }
}

}  // namespace
}  // namespace keel::test
