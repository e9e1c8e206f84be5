// Dropout on the backend under test: the mask of the contract, bit for bit.
#include "src/ops/dropout.h"

#include <limits>

#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

struct Key {
  std::int64_t seed;
  std::int32_t step, first_row = 0;
};

OpCase case_of(const Shape& shape, double p, const Key& key) {
  OpCase c;
  c.inputs.push_back(random_f32(shape, 1));
  for (std::int32_t i : {key.step, key.first_row}) {
    c.inputs.push_back(Tensor::of<std::int32_t>({}, {i}));
  }
  c.build = [=](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::dropout(g, v[0], {v[1], v[2]}, p, key.seed)};
  };
  return c;
}

void check_dropout(const OpCase& c) {
  const Results got = run_tested(c), expected = run_reference(c);
  for (const auto& [name, y] : expected) {
    CAPTURE(name);
    // The factor 1 / (1 - p) is rounded, and the product.
    check_within(got.at(name), y, [&](auto i) { return 2.01 * kEps * std::abs(y.at(i)); });
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      if ((got.at(name).at(i) == 0) != (y.at(i) == 0)) {
        CAPTURE(i);
        CHECK(got.at(name).at(i) == y.at(i));
        break;
      }
    }
  }
}

TEST_CASE("backend dropout: the mask at every width and number of rows" *
          doctest::test_suite("slow")) {
  for_each_target([] {
    for (const std::int64_t n : kSizes) {
      CAPTURE(n);
      check_dropout(case_of({1, n}, 0.1, {42, 0}));
      check_dropout(case_of({3, n}, 0.5, {-7, 123456, 48}));
      if (n < 5000) check_dropout(case_of({2, n, 4}, 0.5, {-7, 123456, 48}));
      check_dropout(case_of({n}, 0.5, {-7, 123456, 48}));
      check_dropout(case_of({n, 5}, 0.5, {-7, 123456, 48}));
    }
    for (std::int64_t width = 1; width <= 130; ++width) {
      CAPTURE(width);
      check_dropout(case_of({7, width}, 0.5, {1, 2, 3}));
    }
    check_dropout(case_of({}, 0.5, {1, 2, 3}));
    check_dropout(case_of({0, 4}, 0.5, {1, 2, 3}));
    check_dropout(case_of({4, 0}, 0.5, {1, 2, 3}));
  });
}

TEST_CASE("backend dropout: seeds, updates, rows and probabilities at their ends") {
  const std::int64_t seeds[] = {0, 1, -1, std::int64_t{1} << 40,
                                std::numeric_limits<std::int64_t>::min()};
  for (const std::int64_t seed : seeds) {
    for (const std::int32_t step : {0, 1, std::numeric_limits<std::int32_t>::max(), -1}) {
      for (const double p : {1e-9, 0.3, 0x1p-24, 0.75, 1 - 0x1p-24, 0.9999999999}) {
        check_dropout(case_of({3, 341}, p, {seed, step, std::numeric_limits<std::int32_t>::max()}));
      }
    }
  }
}

TEST_CASE("backend dropout: an element whose number is p itself is kept") {
  const std::int64_t seed = 11, stream = 22, step = 33;
  const Philox random{std::uint64_t(seed), std::uint32_t(stream), std::uint32_t(step)};
  for (const std::uint64_t e : {0, 5, 77, 998}) {
    for (const double above : {0.0, 0x1p-30}) {
      const double p = random.row_uniform(0, e) + above;
      OpCase c = case_of({1, 1000}, p, {seed, std::int32_t(step)});
      c.build = [&](Graph& g, const std::vector<Value>& v) {
        return std::vector{g.add(kDropout, {v[0], v[1], v[2]}, DropoutAttrs{p, seed, stream})};
      };
      check_dropout(c);
      CHECK((run_tested(c).at("y0").at(std::int64_t(e)) != 0) == (above == 0));
    }
  }
}

TEST_CASE("backend dropout: what is dropped is 0 even where it was not finite") {
  OpCase c = case_of({1000}, 0.5, {1, 1});
  for (double& x : c.inputs[0].as<double>()) x = NAN;
  const Results got = run_tested(c), expected = run_reference(c);
  check_within(got.at("y0"), expected.at("y0"), [](auto) { return 0.0; });
}

}  // namespace
}  // namespace keel::test
