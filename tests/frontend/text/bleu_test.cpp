// BLEU: counts by hand, a published record, tokens of 13a, and what must come out as 0.
#include "frontend/text/bleu.h"

#include <cmath>

#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

using doctest::Approx;
using Numbers = std::vector<std::int32_t>;

BleuScore score_of(const BleuOptions& options, const char* translation, const char* reference) {
  BleuCounter counter(options);
  counter.add(translation, reference);
  return counter.score();
}

TEST_CASE("bleu: clipped counts by hand") {
  // "the the the" against "the cat": one of three words, no pair.
  const BleuCounts clipped = count_ngrams(Numbers{1, 1, 1}, Numbers{1, 2});
  CHECK(clipped == BleuCounts{{1, 0, 0, 0}, {3, 2, 1, 0}, 3, 2});
  const BleuCounts five = count_ngrams(Numbers{1, 2, 3, 4, 5}, Numbers{1, 2, 3, 4, 6});
  CHECK(five == BleuCounts{{4, 3, 2, 1}, {5, 4, 3, 2}, 5, 5});
  CHECK(bleu_of(five).bleu == Approx(100 * std::pow(0.2, 0.25)).epsilon(1e-12));
  BleuCounts sum = clipped;
  sum += five;
  CHECK(sum == BleuCounts{{5, 3, 2, 1}, {8, 6, 4, 2}, 8, 7});
  CHECK(count_ngrams({}, Numbers{1}) == BleuCounts{{}, {}, 0, 1});
}

TEST_CASE("bleu: translations that are too short, and too long") {
  CHECK(score_of({}, "a b c d", "a b c d e").bleu == Approx(100 * std::exp(-0.25)).epsilon(1e-12));
  const BleuScore longer = score_of({}, "a b c d e", "a b c d");
  CHECK(longer.brevity == 1);
  CHECK(longer.bleu == Approx(100 * std::pow(0.8 * 0.75 * (2.0 / 3) * 0.5, 0.25)).epsilon(1e-12));
}

// The end of a published run of Shen et al. (2020). A precision of one decimal is off by at most
// 0.05, which moves BLEU by that over 4 times the precision, relatively.
TEST_CASE("bleu: a published record") {
  BleuCounts counts{{}, {}, 126196, 131156};
  const std::array<double, 4> precisions{69.5, 44.2, 30.1, 20.9};
  constexpr std::int64_t kTotal = 100000;
  double relative = 0;
  for (std::size_t n = 0; n < 4; ++n) {
    counts.totals[n] = kTotal;
    counts.matches[n] = std::llround(precisions[n] * kTotal / 100);
    relative += 0.05 / precisions[n] / 4;
  }
  const BleuScore score = bleu_of(counts);
  CHECK(std::abs(score.brevity - 0.961) <= 0.0005);
  CHECK(std::abs(score.bleu - 35.87) <= 35.87 * relative + 0.005);
  CHECK(text_of(score).ends_with(
      "69.5/44.2/30.1/20.9 (BP=0.961, ratio=0.962, hyp_len=126196, ref_len=131156)"));
}

TEST_CASE("bleu: of no references the ratio is 0") {
  CHECK(text_of(BleuScore{}).ends_with("ratio=0.000, hyp_len=0, ref_len=0)"));
}

TEST_CASE("bleu: nothing in common is 0, smoothed or not") {
  for (BleuTokens tokens : {BleuTokens::kNone, BleuTokens::k13a}) {
    CHECK(score_of({.tokens = tokens}, "yes", "no").bleu == 0);
    CHECK(score_of({.tokens = tokens}, "", "no").bleu == 0);
    CHECK(score_of({.tokens = tokens}, "", "").bleu == 0);
    CHECK(score_of({.tokens = tokens}, "<unk> <unk> <unk> <unk>", "<unk> <unk> <unk> <unk>").bleu ==
          0);
  }
  CHECK(score_of({}, "", "no").brevity == 0);
  CHECK(score_of({}, "a b c d <unk>", "a b c d <unk>").counts.matches ==
        std::array<std::int64_t, 4>{4, 3, 2, 1});
  // No four words in a row: 0 of tokens, smoothed by 13a.
  CHECK(score_of({}, "a b c x e", "a b c d e").bleu == 0);
  const BleuScore smoothed = score_of({.tokens = BleuTokens::k13a}, "a b c x e", "a b c d e");
  CHECK(smoothed.bleu == Approx(100 * std::pow(0.8 * 0.5 * (1.0 / 3) * 0.25, 0.25)).epsilon(1e-12));
}

// A word that nobody knows counts for the reference's length, as one word, and matches nothing, not
// even a translation that says "<unk>" at its place. Matches by hand, beside "a b c d <unk> f".
TEST_CASE("bleu: unknown words in the reference, in all forms of tokens") {
  const std::string reference = "a b c d <unk> f";
  for (const BleuTokens tokens : {BleuTokens::kNone, BleuTokens::kCompound, BleuTokens::k13a}) {
    for (const bool lower_case : {false, true}) {
      CAPTURE(int(tokens));
      CAPTURE(lower_case);
      const auto counts = [&](const char* said, const std::string& right) {
        return score_of({.tokens = tokens, .lower_case = lower_case}, said, right.c_str()).counts;
      };
      CHECK(counts("a b c d e f", reference) == BleuCounts{{5, 3, 2, 1}, {6, 5, 4, 3}, 6, 6});
      CHECK(counts("a b c d", reference) == BleuCounts{{4, 3, 2, 1}, {4, 3, 2, 1}, 4, 6});
      const BleuCounts unknown = counts("a b c d <unk> f", reference);
      CHECK(unknown.matches == std::array<std::int64_t, 4>{5, 3, 2, 1});
      CHECK(unknown.reference == 6);
      // The translation's own unknown words are words; 13a cuts them in three.
      CHECK(unknown.translation == (tokens == BleuTokens::k13a ? 8 : 6));
      CHECK(counts("x", "<unk> <unk>").reference == 2);
    }
  }
}

TEST_CASE("bleu: the second order without a match takes a quarter") {
  const BleuScore score = score_of({.tokens = BleuTokens::k13a}, "a b x d e", "a b c d e");
  CHECK(score.counts.matches == std::array<std::int64_t, 4>{4, 2, 0, 0});
  CHECK(score.bleu ==
        Approx(100 * std::pow(0.8 * 0.5 * (0.5 / 3) * (0.25 / 2), 0.25)).epsilon(1e-12));
}

TEST_CASE("bleu: capitals and signatures") {
  CHECK(score_of({}, "A B C D", "a b c d").bleu == 0);
  CHECK(score_of({.lower_case = true}, "A B C \u00C9", "a b c \u00E9").bleu ==
        Approx(100).epsilon(1e-12));
  CHECK(BleuCounter().signature() == "nrefs:1|case:mixed|eff:no|tok:none|smooth:none");
  CHECK(BleuCounter({.tokens = BleuTokens::k13a, .lower_case = true}).signature() ==
        "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp");
}

TEST_CASE("bleu: the order of sentences and how they are grouped do not matter") {
  const std::vector<std::pair<const char*, const char*>> pairs = {
      {"a b c d e", "a b c d f"}, {"x", "y z"}, {"k l m n o p", "k l m n"}};
  BleuCounter one, other;
  for (const auto& [ours, theirs] : pairs) one.add(ours, theirs);
  for (std::size_t i : {2u, 0u, 1u}) other.add(pairs[i].first, pairs[i].second);
  CHECK(one.counts() == other.counts());
}

TEST_CASE("bleu: tokens of 13a") {
  CHECK(tokens_13a("Hello, world.") == "Hello , world .");
  CHECK(tokens_13a("1,000.5 a.b 3.a x,5") == "1,000.5 a . b 3 . a x , 5");
  CHECK(tokens_13a("1990-1995 well-known -5") == "1990 - 1995 well-known -5");
  CHECK(tokens_13a("&quot;x&quot; &amp;lt; don't 50% (a/b)") == "\" x \" < don't 50 % ( a / b )");
  CHECK(tokens_13a("a..b \u00E9.\u00E9 <skipped>\u00A0z") == "a . . b \u00E9 . \u00E9 z");
  CHECK(tokens_13a("") == "");
}

TEST_CASE("bleu: compounds are split for WMT") {
  CHECK(with_split_compounds("a well-known \u00E9-\u00E9 - x- -y a--b") ==
        "a well ##AT##-##AT## known \u00E9 ##AT##-##AT## \u00E9 - x- -y a ##AT##-##AT## -b");
  // Matched text is not looked at again: every second hyphen stays, as in the papers' scripts.
  CHECK(with_split_compounds("a-b-c") == "a ##AT##-##AT## b-c");
  CHECK(with_split_compounds("a-b-c-d x") == "a ##AT##-##AT## b-c ##AT##-##AT## d x");
  CHECK(with_split_compounds("aa-bb-cc-dd") ==
        "aa ##AT##-##AT## bb ##AT##-##AT## cc ##AT##-##AT## dd");
  CHECK(with_split_compounds("---") == "- ##AT##-##AT## -");
  CHECK(with_split_compounds("\u4E2D-a-\u6587-b") ==
        "\u4E2D ##AT##-##AT## a-\u6587 ##AT##-##AT## b");
  CHECK(score_of({.tokens = BleuTokens::kCompound}, "a-b", "a-b").counts.totals[0] == 3);
  CHECK(score_of({.tokens = BleuTokens::kCompound}, "a-b-c", "a-b-c").counts.totals[0] == 3);
}

TEST_CASE("bleu: tokens given to 13a are noticed") {
  BleuCounter cut({.tokens = BleuTokens::k13a}), whole({.tokens = BleuTokens::k13a});
  for (int i = 0; i < 4; ++i) {
    cut.add("it is so .", "it is so.");
    whole.add(i == 0 ? "it is so ." : "it is so.", "it is so.");
  }
  CHECK(cut.looks_tokenized());
  CHECK_FALSE(whole.looks_tokenized());
}

}  // namespace
}  // namespace keel::text
