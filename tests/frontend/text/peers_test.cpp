// keel beside sacrebleu, sacremoses and subword-nmt, where a Python has them.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "frontend/io/packed_file.h"
#include "frontend/text/bleu.h"
#include "frontend/text/bpe.h"
#include "frontend/text/bpe_learner.h"
#include "frontend/text/lines.h"
#include "frontend/text/moses_detokenizer.h"
#include "frontend/text/moses_tokenizer.h"
#include "frontend/text/punctuation.h"
#include "tests/support/input_checks.h"
#include "tests/support/python.h"

namespace keel::text {
namespace {

using test::python_says;

std::vector<std::string> lines_in(std::string_view content, std::int64_t most = 1 << 30) {
  std::vector<std::string> all;
  Lines lines(content);
  for (auto line = lines.next(); line && std::ssize(all) < most; line = lines.next()) {
    all.emplace_back(line->text);
  }
  return all;
}

std::string text_of_lines(const std::vector<std::string>& lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

// The first 10,000 sentences of a set of Multi30k in a language; none without KEEL_DATA. Their tabs
// become spaces, for to subword-nmt a tab is a letter.
std::vector<std::string> multi30k(const std::string& language, const std::string& set = "train") {
  const char* root = std::getenv("KEEL_DATA");
  const std::filesystem::path folder =
      std::filesystem::path(root != nullptr ? root : "") / "translation/multi30k";
  const auto found = io::find_packed(folder / (set + "." + language));
  if (root == nullptr || !found) {
    MESSAGE("skipped: KEEL_DATA names no folder with translation/multi30k in it");
    return {};
  }
  std::string content = io::read_file(*found, 1 << 26);
  std::ranges::replace(content, '\t', ' ');
  return lines_in(content, 10000);
}

struct BleuCase {
  std::vector<std::string> translation, reference;
};

const std::vector<BleuCase>& bleu_cases() {
  static const std::vector<BleuCase> cases = {
      {{"The cat sat on the mat."}, {"The cat sat on the mat."}},
      {{"The cat sat on a mat, didn't it?"}, {"The cat sat on the mat, did it not?"}},
      {{"It costs 1,000.50 (about 5%)."}, {"It cost 1,000.50 (some 5%)."}},
      {{"A 1990-1995 well-known state-of-the-art thing"},
       {"A well-known thing of 1990-1995, state-of-the-art"}},
      {{"&quot;Yes&quot; &amp; no"}, {"\"Yes\" & no"}},
      {{"na\u00EFve caf\u00E9.\u00C9t\u00E9 5\u20AC, 6\u20AC", "\u4E2D\u6587 x\u00A0y"},
       {"na\u00EFve caf\u00E9. \u00C9t\u00E9 5\u20AC 6\u20AC", "\u4E2D\u6587 x y z"}},
      {{"", "two words here now"}, {"gone", "two words here then"}},
      {{"yes"}, {"no"}},
      {{"a b c x e", "f g"}, {"a b c d e", "g f"}},
      {{"too too too long a sentence of words...", "Ends with $5.", "u.s. and U.K."},
       {"a short one", "It ends with $5.", "U.S. and u.k."}}};
  return cases;
}

// The test set with the faults of translations: words left out, words of the next sentence, words
// said twice, capitals lost, sentences that break off.
std::optional<BleuCase> multi30k_case() {
  BleuCase set{{}, multi30k("de", "test_2016_flickr")};
  if (set.reference.empty()) return std::nullopt;
  for (std::size_t i = 0; i < set.reference.size(); ++i) {
    std::istringstream words(set.reference[i]),
        others(set.reference[(i + 1) % set.reference.size()]);
    std::string line, word, other;
    for (std::size_t k = i; words >> word && k < i + 12 + i % 7; ++k) {
      others >> other;
      if (k % 11 == 0) continue;
      if (k % 9 == 0) std::swap(word, other);
      if (k % 13 == 0) word[0] = char(std::tolower(word[0]));
      line += (line.empty() ? "" : " ") + word + (k % 17 == 0 ? " " + word : "");
    }
    set.translation.push_back(line);
  }
  return set;
}

TEST_CASE("peers: 13a and BLEU as sacrebleu has them") {
  test::TempDir folder;
  std::vector<BleuCase> cases = bleu_cases();
  REQUIRE(cases.size() == 10);
  if (auto corpus = multi30k_case()) cases.push_back(std::move(*corpus));
  const std::string script =
      "from sacrebleu.metrics import BLEU\n"
      "for lower in (False, True):\n"
      "  for k in range(" +
      fmt::format("{}", cases.size()) +
      "):\n"
      "    ours, theirs = [open(f'{k}.{s}', encoding='utf-8').read().split('\\n')[:-1] "
      "for s in 'ab']\n"
      "    print(BLEU(lowercase=lower).corpus_score(ours, [theirs]).score)\n";
  for (std::size_t k = 0; k < cases.size(); ++k) {
    test::write_bytes(folder / fmt::format("{}.a", k), text_of_lines(cases[k].translation));
    test::write_bytes(folder / fmt::format("{}.b", k), text_of_lines(cases[k].reference));
  }
  const auto said = python_says("sacrebleu", script, folder.path());
  if (!said) return;
  const std::vector<std::string> scores = lines_in(*said);
  REQUIRE(scores.size() == 2 * cases.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    CAPTURE(i);
    const BleuCase& c = cases[i % cases.size()];
    BleuCounter counter({.tokens = BleuTokens::k13a, .lower_case = i >= cases.size()});
    for (std::size_t k = 0; k < c.translation.size(); ++k) {
      counter.add(c.translation[k], c.reference[k]);
    }
    CHECK(counter.score().bleu == doctest::Approx(std::stod(scores[i])).epsilon(1e-9));
  }
}

TEST_CASE("peers: tokens, there and back, as sacremoses has them") {
  for (const std::string language : {"en", "de"}) {
    const std::vector<std::string> sentences = multi30k(language);
    if (sentences.empty()) return;
    test::TempDir folder;
    test::write_bytes(folder / "in", text_of_lines(sentences));
    const auto said = python_says("sacremoses",
                                  "from sacremoses import MosesTokenizer, MosesDetokenizer\n"
                                  "t, d = MosesTokenizer('" +
                                      language + "'), MosesDetokenizer('" + language +
                                      "')\n"
                                      "for line in open('in', encoding='utf-8'):\n"
                                      "  tokens = t.tokenize(line.rstrip('\\n'), "
                                      "aggressive_dash_splits=True)\n"
                                      "  print(' '.join(tokens))\n"
                                      "  print(d.detokenize(tokens))\n",
                                  folder.path());
    if (!said) return;
    const std::vector<std::string> theirs = lines_in(*said);
    REQUIRE(theirs.size() == 2 * sentences.size());
    const MosesTokenizer tokenize(
        {.language = language, .aggressive_hyphens = true, .keep_last_period = true});
    std::size_t unlike = 0;
    for (std::size_t i = 0; i < sentences.size(); ++i) {
      unlike += tokenize(sentences[i]) != theirs[2 * i];
      unlike += moses_detokenized(theirs[2 * i], {.language = language}) != theirs[2 * i + 1];
    }
    CHECK(unlike == 0);
  }
}

// Made out of sentences by putting other signs in, for the sentences have few.
std::string with_other_signs(std::string text, std::size_t turn) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> signs = {
      {"\"", {"\u201E", "\u00AB\u00A0", "\u201D"}},
      {"'", {"\u2019", "\u2018", "\u00B4"}},
      {", ", {",\" ", "\u00A0; ", "... "}},
      {"-", {"\u2013", " \u2014 ", "-"}},
      {".", {".\"", "\"...", " (x) ."}},
      {"0", {"0\u00A0000", "0 %", "0\u00A0\u00BAC"}}};
  for (const auto& [sign, others] : signs) {
    for (std::size_t at = text.find(sign); at != std::string::npos; ++turn) {
      const std::string_view other = others[turn % others.size()];
      text.replace(at, std::string_view(sign).size(), other);
      at = text.find(sign, at + other.size());
    }
  }
  return text;
}

TEST_CASE("peers: punctuation as sacremoses has it") {
  for (const std::string language : {"en", "de"}) {
    std::vector<std::string> sentences = multi30k(language);
    if (sentences.empty()) return;
    for (std::size_t i = 0; i < sentences.size(); ++i) {
      sentences[i] = with_other_signs(sentences[i], i);
    }
    test::TempDir folder;
    test::write_bytes(folder / "in", text_of_lines(sentences));
    const auto said =
        python_says("sacremoses",
                    "import re\n"
                    "from sacremoses import MosesPunctNormalizer\n"
                    "n = MosesPunctNormalizer('" +
                        language +
                        "', perl_parity=True)\n"
                        "for line in open('in', encoding='utf-8', newline='\\n'):\n"
                        "  for rule, by in n.substitutions: line = re.sub(rule, by, line)\n"
                        "  print(line, end='')\n",
                    folder.path());
    if (!said) return;
    const std::vector<std::string> theirs = lines_in(*said);
    REQUIRE(theirs.size() == sentences.size());
    for (std::size_t i = 0; i < sentences.size(); ++i) {
      CHECK(normalized_punctuation(sentences[i], language) == theirs[i]);
    }
  }
}

TEST_CASE("peers: merges and sub-words as subword-nmt has them") {
  std::vector<std::string> sentences = multi30k("en");
  for (const std::string& sentence : multi30k("de")) sentences.push_back(sentence);
  if (sentences.empty()) return;
  test::TempDir folder;
  test::write_bytes(folder / "in", text_of_lines(sentences));
  const auto said = python_says(
      "subword-nmt",
      "from subword_nmt.learn_bpe import learn_bpe\n"
      "from subword_nmt.apply_bpe import BPE\n"
      "with open('in', encoding='utf-8') as text, open('codes', 'w', encoding='utf-8') as codes:\n"
      "  learn_bpe(text, codes, 1000)\n"
      "bpe = BPE(open('codes', encoding='utf-8'))\n"
      "for line in open('in', encoding='utf-8'): print(bpe.segment(line))\n",
      folder.path());
  if (!said) return;
  WordCounts counts;
  for (const std::string& sentence : sentences) count_words(sentence, counts);
  const BpeCodes codes = learn_bpe(counts, {.merges = 1000});
  CHECK((codes.text() == test::read_bytes(folder / "codes")));
  Bpe bpe(codes);
  std::string ours;
  for (const std::string& sentence : sentences) ours += bpe.apply(sentence, "here") + "\n";
  CHECK((ours == *said));
}

}  // namespace
}  // namespace keel::text
