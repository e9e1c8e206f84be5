// Beam search by hand: which hypotheses stay open, when one is finished, and which is the best.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "frontend/text/dictionary.h"
#include "models/translation/beam_search.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

constexpr std::int32_t kEnd = text::Dictionary::kEnd, kPad = text::Dictionary::kPad,
                       kBegin = text::Dictionary::kBegin;
constexpr std::int32_t kA = 4, kB = 5, kC = 6;

using Said = std::vector<std::pair<std::int32_t, float>>;

// Tells the search what follows each open hypothesis.
void say(BeamSearch& search, const std::vector<Said>& all, float end = -9) {
  std::vector<std::vector<std::int32_t>> symbols;
  std::vector<std::vector<float>> scores;
  for (const Said& said : all) {
    symbols.emplace_back();
    scores.emplace_back();
    for (const auto& [symbol, score] : said) {
      symbols.back().push_back(symbol);
      scores.back().push_back(score);
    }
  }
  std::vector<NextSymbols> next;
  for (std::size_t i = 0; i < all.size(); ++i) next.push_back({symbols[i], scores[i], end});
  search.take(next);
}

using Symbols = std::vector<std::int32_t>;

TEST_CASE("beam search: greedy takes the likeliest symbol, and stops at the end") {
  BeamSearch search({.beam = 1, .length_penalty = 1, .longest = 10});
  say(search, {{{kEnd, -0.1f}, {kB, -0.5f}, {kA, -1}}});  // the end cannot be the first
  REQUIRE(search.open().size() == 1);
  CHECK(search.open()[0].symbols == Symbols{kB});
  say(search, {{{kPad, -0.1f}, {kA, -0.2f}, {kEnd, -0.3f}}});
  CHECK(search.open()[0].symbols == Symbols{kB, kA});
  CHECK_FALSE(search.is_done());
  say(search, {{{kEnd, -0.25f}, {kA, -0.5f}}});
  CHECK(search.is_done());
  CHECK(search.open().empty());
  CHECK(search.best().symbols == Symbols{kB, kA});
  CHECK(search.best().score == doctest::Approx(-0.95));
  CHECK(search.normalized(search.best()) == doctest::Approx(-0.95 / 3));
}

TEST_CASE("beam search: the best extensions of all hypotheses stay open, with their parents") {
  BeamSearch search({.beam = 2, .length_penalty = 1, .longest = 10});
  say(search, {{{kA, -1}, {kB, -2}, {kC, -3}}});
  REQUIRE(search.open().size() == 2);
  say(search, {{{kA, -4}, {kB, -5}}, {{kC, -1}, {kA, -2.5f}}});
  REQUIRE(search.open().size() == 2);
  CHECK(search.open()[0].symbols == Symbols{kB, kC});
  CHECK(search.open()[0].parent == 1);
  CHECK(search.open()[1].symbols == Symbols{kB, kA});
  CHECK(search.open()[1].score == doctest::Approx(-4.5));
  // Among equal scores the earlier hypothesis comes first.
  say(search, {{{kA, -2}}, {{kA, -0.5f}}});
  CHECK(search.open()[0].symbols == Symbols{kB, kC, kA});
}

TEST_CASE("beam search: an end counts among the first `beam` extensions alone") {
  BeamSearch search({.beam = 2, .length_penalty = 0, .longest = 10});
  say(search, {{{kA, -1}, {kB, -1.2f}}});
  // Ranks: kA kEnd -1.1 (finished), kA kA -1.5, kB kEnd -1.6 (third: dropped), kB kA -2.5.
  say(search, {{{kEnd, -0.1f}, {kA, -0.5f}}, {{kEnd, -0.4f}, {kA, -1.3f}}});
  CHECK(search.finished().size() == 1);
  CHECK(search.finished()[0].symbols == Symbols{kA});
  REQUIRE(search.open().size() == 2);
  CHECK(search.open()[1].symbols == Symbols{kB, kA});
  CHECK_FALSE(search.is_done());
  // The second one that is finished ends the search, whatever else is open.
  say(search, {{{kEnd, -0.5f}, {kB, -0.6f}}, {{kB, -5}, {kC, -6}}});
  CHECK(search.is_done());
  CHECK(search.best().symbols == Symbols{kA});  // -1.1 against -2.0, lengths not counting
}

TEST_CASE("beam search: the length penalty prefers the longer of two") {
  for (const auto& [penalty, expected] : {std::pair{0.0, Symbols{kA}}, {1.0, Symbols{kA, kA}}}) {
    BeamSearch search({.beam = 2, .length_penalty = penalty, .longest = 10});
    say(search, {{{kA, -1}, {kB, -8}}});
    say(search, {{{kA, -0.9f}, {kEnd, -1}}, {{kA, -8}, {kB, -9}}});
    say(search, {{{kEnd, -0.4f}, {kB, -7}}, {{kA, -9}, {kB, -9}}});
    CHECK(search.is_done());
    CHECK(search.best().symbols == expected);  // -2 of 2, or -2.3 of 3
  }
}

TEST_CASE("beam search: at the longest the end is taken, and its score counts") {
  BeamSearch search({.beam = 2, .length_penalty = 1, .longest = 1});
  say(search, {{{kA, -1}, {kB, -1.5f}}});
  say(search, {{{kA, -0.1f}}, {{kB, -0.1f}}}, -3);
  CHECK(search.is_done());
  REQUIRE(search.finished().size() == 2);
  CHECK(search.best().symbols == Symbols{kA});
  CHECK(search.best().score == doctest::Approx(-4));
}

TEST_CASE("beam search: what no text has is never taken, however likely") {
  BeamSearch search({.beam = 2, .length_penalty = 1, .longest = 10, .first_filler = kC});
  const Said said = {{kBegin, -0.1f}, {kPad, -0.2f}, {kC, -0.3f},
                     {kC + 1, -0.4f}, {kA, -5},      {kB, -6}};
  say(search, {said});
  REQUIRE(search.open().size() == 2);
  CHECK(search.open()[0].symbols == Symbols{kA});
  CHECK(search.open()[1].symbols == Symbols{kB});
  say(search, {said, said});
  CHECK(search.open()[0].symbols == Symbols{kA, kA});
  CHECK(search.open()[0].score == doctest::Approx(-10));
  CHECK(BeamSearch::symbols_needed(2, 2) == 2 * 2 + 5);  // kBegin, kPad, kEnd and two fillers
}

TEST_CASE("beam search: a beam as wide as all symbols") {
  constexpr std::int32_t kUnk = text::Dictionary::kUnk;
  BeamSearch search({.beam = 4, .length_penalty = 1, .longest = 3, .first_filler = kB});
  const Said all = {{kEnd, -1}, {kUnk, -1.1f}, {kA, -1.2f}, {kBegin, -2}, {kPad, -3}};
  say(search, {all});
  CHECK(search.open().size() == 2);  // the two that may be first
  while (!search.is_done()) say(search, std::vector<Said>(search.open().size(), all), -1);
  CHECK(search.finished().size() == 4);
  CHECK(search.ranked().size() == 4);
}

TEST_CASE("beam search: of equal scores the earlier hypothesis, then the first symbol said") {
  BeamSearch search({.beam = 2, .length_penalty = 1, .longest = 10});
  const Said same = {{kPad, -1}, {kEnd, -1}, {kA, -1}, {kB, -1}, {kC, -1}};
  say(search, {same});
  CHECK(search.open()[0].symbols == Symbols{kA});
  CHECK(search.open()[1].symbols == Symbols{kB});
  say(search, {same, same});
  REQUIRE(search.finished().size() == 1);
  CHECK(search.finished()[0].symbols == Symbols{kA});
  CHECK(search.open()[0].symbols == Symbols{kA, kA});
  CHECK(search.open()[1].symbols == Symbols{kA, kB});
}

TEST_CASE("beam search: a score that is no logarithm of a probability is an error") {
  BeamSearch search({.beam = 1, .length_penalty = 1, .longest = 1}, 6);
  const auto refused = [&](float score, float end, const char* symbol) {
    test::check_refused(
        [&] {
          say(search, {{{kA, score}}}, end);
        },
        "[translation] sentence 7", symbol, ErrorKind::kDiverged);
  };
  refused(std::nanf(""), -1, "symbol 1");
  refused(std::numeric_limits<float>::infinity(), -1, "symbol 1");
  say(search, {{{kA, -1}, {kB, -std::numeric_limits<float>::infinity()}}});
  refused(-1, std::nanf(""), "symbol 2");  // at the longest only the end counts
}

}  // namespace
}  // namespace keel::models
