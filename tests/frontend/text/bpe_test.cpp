// Byte-pair encoding: learned and applied as its definition says, files of merges, and back.
#include "frontend/text/bpe.h"

#include <algorithm>
#include <map>

#include "frontend/text/bpe_learner.h"
#include "src/core/rng.h"
#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

using test::refuses;
using Word = std::vector<std::string>;

std::vector<std::string> merges_of(const WordCounts& counts, std::int64_t merges,
                                   std::int64_t min_count = 2) {
  std::vector<std::string> texts;
  const BpeCodes codes = learn_bpe(counts, {.merges = merges, .min_count = min_count});
  for (const BpeMerge& merge : codes.merges) texts.push_back(merge.left + " " + merge.right);
  return texts;
}

Word characters_of(const std::string& word) {
  Word parts;
  for (char c : word) {
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) {
      parts.back() += c;
    } else {
      parts.emplace_back(1, c);
    }
  }
  parts.back() += "</w>";
  return parts;
}

Word joined(const Word& word, const BpeMerge& merge) {
  Word out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool here = i + 1 < word.size() && word[i] == merge.left && word[i + 1] == merge.right;
    out.push_back(here ? word[i] + word[i + 1] : word[i]);
    i += here;
  }
  return out;
}

// Learning as it is defined: all pairs are counted again for every merge.
std::vector<BpeMerge> learned_by_definition(const WordCounts& counts, std::size_t merges) {
  std::vector<std::pair<Word, std::int64_t>> words;
  for (const auto& [word, count] : counts) words.emplace_back(characters_of(word), count);
  std::vector<BpeMerge> learned;
  while (learned.size() < merges) {
    std::map<std::pair<std::string, std::string>, std::int64_t> pairs;
    for (const auto& [word, count] : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) pairs[{word[i], word[i + 1]}] += count;
    }
    // Among equal counts the last pair in the order of the map, which is by bytes, is taken.
    const auto best = std::ranges::max_element(
        pairs, [](const auto& a, const auto& b) { return a.second <= b.second; });
    if (best == pairs.end() || best->second < 2) break;
    learned.push_back({best->first.first, best->first.second});
    for (auto& [word, count] : words) word = joined(word, learned.back());
  }
  return learned;
}

std::string cut_by_definition(const std::string& word, const BpeCodes& codes) {
  Word parts = characters_of(word);
  while (true) {
    const auto next = std::ranges::find_if(codes.merges, [&](const BpeMerge& merge) {
      return joined(parts, merge).size() < parts.size();
    });
    if (next == codes.merges.end()) break;
    parts = joined(parts, *next);
  }
  std::string out;
  for (const std::string& part : parts) out += part + "@@ ";
  return out.substr(0, out.size() - 7);  // without "</w>" and the last mark
}

// Short words of few letters, so that ties and runs of one letter are many.
WordCounts random_words(std::uint64_t seed) {
  constexpr std::array<const char*, 5> kLetters = {"a", "b", "<", "\u00E9", "s"};
  const Philox random(seed, stream_of("bpe.words"));
  WordCounts counts;
  std::uint64_t at = 0;
  for (int i = 0; i < 40; ++i) {
    std::string word;
    const std::uint32_t length = 1 + random.below(at++, 9), letters = 1 + random.below(at++, 5);
    for (std::uint32_t k = 0; k < length; ++k) word += kLetters[random.below(at++, letters)];
    counts[word] += 1 + random.below(at++, 3);
  }
  return counts;
}

TEST_CASE("bpe: the most frequent pair, of equals the larger one") {
  using Merges = std::vector<std::string>;
  CHECK(merges_of({{"aaa", 2}}, 10) == Merges{"a a</w>", "a aa</w>"});
  CHECK(merges_of({{"aaaa", 2}}, 10) == Merges{"a a", "aa a", "aaa a</w>"});
  // '<' stands before the letters, so that "s</w>" is less than "saq</w>".
  CHECK(merges_of({{"bs", 2}, {"bsaq", 2}}, 10) ==
        Merges{"s a", "sa q</w>", "b saq</w>", "b s</w>"});
  CHECK(merges_of({{"low", 5}, {"lower", 2}}, 3) == Merges{"l o", "lo w</w>", "w e"});
  CHECK(merges_of({{"ab", 1}, {"x", 50}}, 10).empty());
  CHECK(merges_of({{"ab", 1}}, 10, 1) == Merges{"a b</w>"});
  CHECK(merges_of({}, 10).empty());
}

TEST_CASE("bpe: learned as if all pairs were counted anew every time") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const WordCounts words = random_words(seed);
    const std::vector<BpeMerge> expected = learned_by_definition(words, 60);
    REQUIRE(expected.size() > 5);
    CHECK(learn_bpe(words, {.merges = 60}).merges == expected);
  }
}

TEST_CASE("bpe: learning tells how far it is") {
  WordCounts counts;
  for (int i = 0; i < 600; ++i) counts[fmt::format("{:03}", i)] = 2;
  std::vector<std::int64_t> told;
  const BpeCodes codes = learn_bpe(counts, {.merges = 1200, .min_count = 1},
                                   [&](std::int64_t merges) { told.push_back(merges); });
  CHECK(std::ssize(codes.merges) > 500);
  CHECK(std::ssize(told) == std::ssize(codes.merges) / 500);
  CHECK(told[0] == 500);
}

TEST_CASE("bpe: applied as its definition says, to words seen and not seen") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const BpeCodes codes = learn_bpe(random_words(seed), {.merges = 30});
    Bpe bpe(codes);
    for (std::uint64_t other : {seed, seed + 1000}) {
      for (const auto& [word, count] : random_words(other)) {
        CHECK(bpe.apply(word, "here") == cut_by_definition(word, codes));
      }
    }
  }
}

TEST_CASE("bpe: lines, unknown characters and long words") {
  Bpe bpe(BpeCodes::parse("#version: 0.2\nl o\nlo w</w>\ne r</w>\n", "codes"));
  CHECK(bpe.apply("low  lower\tslow x \u4E2D\u6587", "here") ==
        "low lo@@ w@@ er s@@ low x \u4E2D@@ \u6587");
  CHECK(bpe.apply("", "here").empty());
  CHECK(bpe.apply("a\u00A0b", "here") == "a@@ \u00A0@@ b");
  const std::string lows = bpe.apply(std::string(200000, 'l') + "ow", "here");
  CHECK(lows.ends_with("l@@ l@@ low"));
  CHECK(refuses(ErrorKind::kBadInput, "in: line 7: expected words that do not end in @@, got 'a@@'",
                [&] { bpe.apply("x a@@", "in: line 7"); }));
}

TEST_CASE("bpe: all places of a merge are joined before what they make possible") {
  Bpe bpe(BpeCodes::parse("#version: 0.2\nxy x\nx y\n", "codes"));
  CHECK(bpe.apply("xyxyz xyx", "here") == "xy@@ xy@@ z xy@@ x");
}

TEST_CASE("bpe: version 0.1 has the end marker as a symbol of its own") {
  Bpe marked(BpeCodes::parse("w </w>\nl o\nlo w\n", "codes"));
  CHECK(marked.apply("low lowx", "here") == "lo@@ w low@@ x");
  Bpe bpe(BpeCodes::parse("l o\nlo w\nlow </w>\n", "codes"));
  CHECK(bpe.apply("low lowx l", "here") == "low low@@ x l");
}

TEST_CASE("bpe: put together again") {
  CHECK(bpe_undone("lo@@ w@@ er s@@ low") == "lower slow");
  CHECK(bpe_undone("a@@b @@ c@@") == "a@@b c");
  CHECK(bpe_undone("") == "");
  const WordCounts words = random_words(5);
  Bpe bpe(learn_bpe(words, {.merges = 30}));
  for (const auto& [word, count] : words) CHECK(bpe_undone(bpe.apply(word, "here")) == word);
}

TEST_CASE("bpe: files of merges") {
  const std::string text = "#version: 0.2\na b</w>\n\u00E9 \u2028\n";
  const BpeCodes codes = BpeCodes::parse(text, "codes");
  CHECK(codes.text() == text);
  CHECK(codes.merges == std::vector<BpeMerge>{{"a", "b</w>"}, {"\u00E9", "\u2028"}});
  CHECK_FALSE(codes.separate_end);
  CHECK(BpeCodes::parse("a b\r\n", "codes").merges == std::vector<BpeMerge>{{"a", "b"}});
  CHECK(BpeCodes::parse("a b\r\r\n", "codes").merges == std::vector<BpeMerge>{{"a", "b"}});
  // The first of two equal merges counts.
  CHECK(Bpe(BpeCodes::parse("#version: 0.2\nb c</w>\na b\nb c</w>\n", "codes")).apply("abc", "") ==
        "a@@ bc");
  for (const char* line : {"", "ab", "a b c", "a  b", " a b", "a b "}) {
    CHECK(refuses(
        ErrorKind::kBadInput,
        fmt::format("codes: line 2: expected two symbols with a space between, got '{}'", line),
        [&] { BpeCodes::parse(std::string("x y\n") + line + "\n", "codes"); }));
  }
  CHECK(refuses(ErrorKind::kBadInput, "line 1: expected #version: 0.1 or 0.2, got '#version: 3'",
                [] { BpeCodes::parse("#version: 3\n", "codes"); }));
  CHECK(refuses(ErrorKind::kUsage, "merges: expected 1 or more, got 0",
                [] { learn_bpe({}, {.merges = 0}); }));
  CHECK(refuses(ErrorKind::kUsage, "min_count: expected 1 or more, got 0",
                [] { learn_bpe({}, {.min_count = 0}); }));
}

}  // namespace
}  // namespace keel::text
