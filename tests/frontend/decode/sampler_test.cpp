// Drawing tokens: which are kept, how often each comes, ties, and what is refused.
#include "frontend/decode/sampler.h"

#include <array>
#include <cmath>
#include <vector>

#include "tests/support/input_checks.h"

namespace keel::decode {
namespace {

using test::refuses;
using Logits = std::vector<float>;

// How many of `draws` numbers, spread evenly, draw each token.
std::vector<int> counts_of(const Logits& logits, const task::SampleOptions& options,
                           int draws = 1000) {
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) {
    ++counts[std::size_t(drawn_token(logits, options, (i + 0.5) / draws))];
  }
  return counts;
}

// Probabilities 0.2, 0.5, 0.3.
const Logits kThree = {std::log(0.2f), std::log(0.5f), std::log(0.3f)};

TEST_CASE("sampler: tokens come as often as their probabilities say") {
  CHECK(counts_of(kThree, {}) == std::vector{200, 500, 300});
  CHECK(counts_of({std::log(0.2f) + 7, std::log(0.5f) + 7, std::log(0.3f) + 7}, {}) ==
        std::vector{200, 500, 300});
}

TEST_CASE("sampler: the temperature sharpens or evens out") {
  // 0.04, 0.25 and 0.09 of 0.38
  const std::vector<int> cold = counts_of(kThree, {.temperature = 0.5}, 3800);
  CHECK(cold == std::vector{400, 2500, 900});
  const std::vector<int> hot = counts_of(kThree, {.temperature = 1e6}, 3000);
  for (const int count : hot) CHECK(std::abs(count - 1000) <= 1);
  CHECK(counts_of(kThree, {.temperature = 0}) == std::vector{0, 1000, 0});
}

TEST_CASE("sampler: top_k and top_p keep the likeliest") {
  CHECK(counts_of(kThree, {.top_k = 2}, 800) == std::vector{0, 500, 300});
  CHECK(counts_of(kThree, {.top_k = 9}) == std::vector{200, 500, 300});
  CHECK(counts_of(kThree, {.top_p = 0.4}) == std::vector{0, 1000, 0});
  CHECK(counts_of(kThree, {.top_p = 0.6}, 800) == std::vector{0, 500, 300});
  // The first of the two that top_k keeps has 5 / 8.
  CHECK(counts_of(kThree, {.top_k = 2, .top_p = 0.6}) == std::vector{0, 1000, 0});
}

TEST_CASE("sampler: among equal logits the lower number comes first") {
  CHECK(counts_of({1, 1, 1, 1}, {.temperature = 0}) == std::vector{1000, 0, 0, 0});
  CHECK(counts_of({0, 2, 2, 2}, {.top_k = 2}) == std::vector{0, 500, 500, 0});
}

TEST_CASE("sampler: a token without probability never comes, at either end of the numbers") {
  const Logits logits = {-INFINITY, 1, -INFINITY, 0};
  for (const double uniform : {0.0, 0x1p-24, 1 - 0x1p-24}) {
    CHECK(drawn_token(logits, {}, uniform) % 2 == 1);
  }
  CHECK(drawn_token({logits.data(), 1 + 1}, {.temperature = 1e-300}, 0.7) == 1);
}

TEST_CASE("sampler: the numbers of a text are a pure function of seed and place") {
  CHECK(token_uniform(1, 5) == token_uniform(1, 5));
  CHECK(token_uniform(1, 5) != token_uniform(2, 5));
  CHECK(token_uniform(1, 5) != token_uniform(1, 6));
}

TEST_CASE("sampler: refusals") {
  CHECK(refuses(ErrorKind::kDiverged, "logit 1: expected a number, got nan", [] {
    drawn_token(Logits{0, NAN}, {}, 0.5);
  }));
  CHECK(refuses(ErrorKind::kDiverged, "logit 0: expected a number, got inf", [] {
    drawn_token(Logits{INFINITY, 0}, {}, 0.5);
  }));
  CHECK(refuses(ErrorKind::kDiverged, "expected a logit above -infinity among 2, got none", [] {
    drawn_token(Logits{-INFINITY, -INFINITY}, {}, 0.5);
  }));
  const auto refused = [](std::string_view text, const task::SampleOptions& options) {
    return refuses(ErrorKind::kUsage, text, [&] { options.validate(); });
  };
  CHECK(refused("temperature: expected 0 or more, got -1", {.temperature = -1}));
  CHECK(refused("temperature: expected 0 or more, got nan", {.temperature = NAN}));
  CHECK(refused("top_k: expected 0 or more, got -2", {.top_k = -2}));
  CHECK(refused("top_p: expected above 0 to 1, got 0", {.top_p = 0}));
  CHECK(refused("top_p: expected above 0 to 1, got 1.5", {.top_p = 1.5}));
}

}  // namespace
}  // namespace keel::decode
