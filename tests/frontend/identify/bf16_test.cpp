// `keel identify` on results of programs that compute in bfloat16.
#include "src/core/bf16.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/backends.h"
#include "frontend/identify/identify.h"
#include "frontend/identify/trial.h"
#include "tests/support/checks.h"

namespace keel::identify {
namespace {

constexpr std::int64_t kRows = 6, kWidth = 64;

Tensor in_bf16(Tensor t) {
  for (double& v : t.as<double>()) v = rounded_to_bf16(v);
  return t;
}

// x, a gain and y = w x / rms, w being offset + gain, as a program in bfloat16 computes it.
Given rms_norm(bool rounds_first, double offset = 0) {
  Given given;
  given.x = in_bf16(test::random_normal({kRows, kWidth}, 3));
  given.gain = in_bf16(test::random_normal({kWidth}, 4, 0.5 - offset, 0.2));
  given.y = given.x.clone();
  for (std::int64_t row = 0; row < kRows; ++row) {
    double squares = 0;
    for (std::int64_t i = 0; i < kWidth; ++i) squares += std::pow(given.x.at(row * kWidth + i), 2);
    for (std::int64_t i = 0; i < kWidth; ++i) {
      double xhat = given.x.at(row * kWidth + i) / std::sqrt(squares / kWidth + 1e-6);
      if (rounds_first) xhat = rounded_to_bf16(xhat);
      given.y.as<double>()[std::size_t(row * kWidth + i)] =
          rounded_to_bf16(xhat * (given.gain->at(i) + offset));
    }
  }
  return given;
}

TEST_CASE("identify bf16: an RMSNorm is named, and so is the order of its casts") {
  const auto reference = make_backend("reference");
  for (const double offset : {0.0, 1.0}) {
    for (const bool rounds_first : {false, true}) {
      CAPTURE(offset);
      CAPTURE(rounds_first);
      const Answer answer = identify(*reference, rms_norm(rounds_first, offset));
      REQUIRE(!answer.matches.empty());
      CHECK(answer.matches[0].norm() == "rmsnorm");
      CHECK(answer.matches[0].form.adds_one == (offset == 1));
      const auto says = [&](std::string_view part) {
        return std::ranges::any_of(answer.notes, [&](const std::string& note) {
          return note.find(part) != std::string::npos;
        });
      };
      CHECK(says("as in Llama") == rounds_first);
      CHECK(says("as in Gemma") == !rounds_first);
    }
  }
}

TEST_CASE("identify bf16: what is more than two roundings away is no match") {
  const auto reference = make_backend("reference");
  Given given = rms_norm(true);
  double& first = given.y.as<double>()[0];
  first = rounded_to_bf16(first * 1.02);  // five units of the last place
  CHECK(identify(*reference, given).matches.empty());
}

TEST_CASE("identify bf16: a result counts if it has enough numbers and all are of that type") {
  const Given given = rms_norm(false);
  CHECK(is_bf16(given.y));
  Tensor one_off = given.y.clone();
  one_off.as<double>()[5] *= 1 + 0x1p-12;
  CHECK(!is_bf16(one_off));
  CHECK(!is_bf16(test::f64({4}, {1, -1, 2, 0.5})));  // so few may be so by chance
  const auto reference = make_backend("reference");
  Given other = rms_norm(false);
  other.y = std::move(one_off);
  CHECK(place_of_rounding(*reference, other, {.norm = "rmsnorm", .options = {}}).empty());
}

}  // namespace
}  // namespace keel::identify
