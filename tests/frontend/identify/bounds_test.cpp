// `keel identify` takes what lies within a bound of a norm's result and refuses what lies beyond.
// The bounds are those of docs/numerics.md, worked out by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "frontend/compare/bounds/running_error.h"
#include "frontend/identify/identify.h"
#include "frontend/identify/trial.h"
#include "tests/support/checks.h"

namespace keel::identify {
namespace {

Tensor numbers(const Shape& shape, std::initializer_list<double> values) {
  return test::f64(shape, values);
}

// No bound of these tests is off by a fifth.
void check_units(const Tensor& bound, const std::vector<double>& units) {
  REQUIRE(bound.elements() == std::ssize(units));
  for (std::int64_t e = 0; e < bound.elements(); ++e) {
    CAPTURE(e);
    CAPTURE(bound.at(e) / compare::kEps);
    CHECK(bound.at(e) / compare::kEps < 1.2 * units[std::size_t(e)]);
    CHECK(bound.at(e) / compare::kEps > units[std::size_t(e)] / 1.2);
  }
}

TEST_CASE("identify bounds: a distance is the largest error over its bound") {
  const Judged result{numbers({3}, {1, 2, 4}), numbers({3}, {0.1, 0.5, 1})};
  CHECK(result.distance(numbers({3}, {1, 2, 4})) == 0);
  CHECK(result.distance(numbers({3}, {1.05, 2, 4})) == doctest::Approx(0.5));
  CHECK(result.distance(numbers({3}, {1.05, 1, 4})) == doctest::Approx(2));
  CHECK(result.distance(numbers({3}, {1, 2, 2})) == doctest::Approx(2));
  CHECK(std::isinf(result.distance(numbers({3}, {1, NAN, 4}))));
  CHECK(std::isinf(result.distance(numbers({2}, {1, 2}))));
  const Judged exact{numbers({1}, {1}), numbers({1}, {0})};
  CHECK(exact.distance(numbers({1}, {1})) == 0);
  CHECK(std::isinf(exact.distance(numbers({1}, {1.0000001}))));
}

// Mean 0 and deviation 1: the mean is off by 6 eps, 1 / s by 13.5 (numerics.md, Norms of any
// program).
Given four_numbers(const Shape& shape) {
  Given given;
  given.x = numbers(shape, {1, -1, 1, -1});
  given.y = given.x.clone();
  return given;
}

TEST_CASE("identify bounds: of y, dx and dgain, by hand") {
  const auto judge = make_backend("reference");
  Given given = four_numbers({1, 4});
  given.gain = numbers({4}, {2, 2, 2, 2});
  const Form rows{"layernorm", {{"eps", "0"}, {"gain", "true"}, {"bias", "false"}}};
  check_units(Trial(*judge, given, rows).bounded_y().bound, std::vector<double>(4, 51));
  const Form rms{"rmsnorm", {{"eps", "0"}, {"gain", "true"}}};
  check_units(Trial(*judge, given, rms).bounded_y().bound, std::vector<double>(4, 39));
  Given column = four_numbers({4, 1});
  column.gain = numbers({1}, {2});
  const Form batch{"batchnorm", {{"eps", "0"}, {"gain", "true"}, {"bias", "false"}}};
  check_units(Trial(*judge, column, batch).bounded_y().bound, std::vector<double>(4, 51));

  // g = (1, 0, 0, 0), with means over n - 1, since a variance may be unbiased: 6 of a sum of one
  // term among four. Mean and 1 / s are the other program's own, which xhat takes 19.5 from.
  given.gain = numbers({4}, {1, 1, 1, 1});
  Trial trial(*judge, given, rows);
  const ComparedGradient gradient = trial.gradient(numbers({1, 4}, {1, 0, 0, 0}));
  const double rounded = (6 + 6) / 3.0 + (6 + 6) / 3.0 + (6 + 4) / 3.0 + 6 / 3.0;
  const double moved = 13.5 * (1 / 3.0 + 3 / 3.0) + 2 * 19.5 / 3;
  const double other = rounded + moved;
  check_units(gradient.dx.bound, {6 + 13.5 + other, other, other, other});
  REQUIRE(gradient.dgain.has_value());
  // One term, 3 eps of it, 4 of the unit, and xhat's own 19.5.
  CHECK(gradient.dgain->bound.at(0) / compare::kEps == doctest::Approx(3 + 4 + 19.5).epsilon(0.2));
}

struct Known {
  Form form;
  Shape x;
  std::int64_t gain = 0;
};

TEST_CASE("identify bounds: within a bound a norm is known, beyond it it is refused") {
  const auto judge = make_backend("reference");
  const std::vector<Known> all{{{"layernorm_simple", {{"eps", "1e-05"}}}, {9, 12}},
                               {{"layernorm", {{"eps", "1e-05"}, {"gain", "true"}}}, {9, 12}, 12},
                               {{"rmsnorm", {{"eps", "1e-06"}, {"gain", "true"}}}, {9, 12}, 12},
                               {{"scalenorm", {{"eps", "1e-05"}}}, {9, 12}, 1},
                               {{"weightnorm", {{"eps", "1e-12"}}}, {9, 12}, 9},
                               {{"groupnorm", {{"groups", "3"}, {"eps", "1e-05"}}}, {4, 12, 2, 3}},
                               {{"instancenorm", {{"eps", "1e-05"}}}, {4, 6, 2, 3}},
                               {{"batchnorm", {{"eps", "1e-05"}}}, {9, 12}, 12},
                               {{"pn_v", {{"eps", "1e-05"}}}, {9, 12}, 12}};
  for (const Known& known : all) {
    CAPTURE(known.form.text());
    Given given;
    given.x = test::random_normal(known.x, 1);
    given.y = given.x.clone();
    if (known.gain > 0) given.gain = test::random_normal({known.gain}, 2);
    const Judged y = Trial(*judge, given, known.form).bounded_y();
    std::int64_t widest = 0;
    for (std::int64_t e = 0; e < y.bound.elements(); ++e) {
      if (y.bound.at(e) > y.bound.at(widest)) widest = e;
    }
    const auto answer_for = [&](double bounds) {
      given.y = Tensor::of<double>(known.x, y.value.as<double>());
      given.y.as<double>()[std::size_t(widest)] += bounds * y.bound.at(widest);
      return identify(*judge, given);
    };
    const auto is_known = [&](const Answer& answer) {
      return std::ranges::any_of(answer.matches, [&](const Candidate& c) {
        return c.form.norm == known.form.norm && c.form.option("eps") == known.form.option("eps");
      });
    };
    CHECK(is_known(answer_for(0.9)));
    CHECK_FALSE(is_known(answer_for(1.1)));
  }
}

// The judged results of a known y: a gradient of the gain, and the new running statistics.
TEST_CASE("identify bounds: of dgain and of running statistics, too") {
  const auto judge = make_backend("reference");
  const Form form{"batchnorm", {{"eps", "1e-05"}}};
  Given given;
  given.x = test::random_normal({9, 12}, 1);
  given.y = given.x.clone();
  given.gain = test::random_normal({12}, 2);
  given.before["running_mean"] = test::random_normal({12}, 3);
  given.y = Trial(*judge, given, form).bounded_y().value.clone();
  given.dy = test::random_normal({9, 12}, 4);
  const Judged dgain = *Trial(*judge, given, form).gradient(*given.dy).dgain;
  const Judged mean = std::move(Trial(*judge, given, form).states().at("running_mean"));
  const auto moved = [](const Judged& of, double bounds) {
    Tensor t = of.value.clone();
    t.as<double>()[5] += bounds * of.bound.at(5);
    return t;
  };
  const auto is_average = [&](double bounds) {
    given.after["running_mean"] = moved(mean, bounds);
    const std::vector<std::string> lines = running(*judge, given, form);
    REQUIRE(lines.size() == 1);
    return lines[0] == "running_mean: takes 0.1 of the batch and keeps 0.9";
  };
  CHECK(is_average(0.9));
  CHECK_FALSE(is_average(1.1));
  given.after.clear();
  for (const auto& [bounds, fits] : {std::pair{0.9, true}, {1.1, false}}) {
    given.dgain = moved(dgain, bounds);
    const Answer answer = identify(*judge, given);
    REQUIRE(!answer.matches.empty());
    CHECK(answer.matches[0].form.norm == "batchnorm");
    CHECK(answer.fits() == fits);
  }
}

}  // namespace
}  // namespace keel::identify
