// The sentences of translation: synthetic ones by their rules, and data sets by their layouts.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "frontend/text/lines.h"
#include "models/translation/builtin.h"
#include "models/translation/line_form.h"
#include "tests/support/cost.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;
using test::TempDir;
using Strings = std::vector<std::string>;

std::string text_of_pairs(const SentencePairs& pairs) {
  std::string text;
  for (std::size_t i = 0; i < pairs.source.size(); ++i) {
    text += pairs.source[i] + "\t" + pairs.target[i] + "\n";
  }
  return text;
}

std::vector<int> ranks_of(const std::string& sentence) {
  std::vector<int> ranks;
  for (std::string_view word : text::words_of(sentence)) {
    int rank = -1;
    std::from_chars(word.data() + 1, word.data() + word.size(), rank);
    CHECK(word[0] == 's');
    ranks.push_back(rank);
  }
  return ranks;
}

TEST_CASE("lex200: translations by the rules") {
  CHECK(lex200_translation({1, 2, 3}) == Strings{"t10", "t17", "t24"});
  CHECK(lex200_translation({7, 5}) == Strings{"t52", "t38", "g1"});
  CHECK(lex200_translation({2, 4, 3}) == Strings{"t17", "t24", "t31"});
  CHECK(lex200_translation({4}) == Strings{"t31"});
  // Both words of a swap bring their own; the second one, 8, changes places with nothing.
  CHECK(lex200_translation({20, 8, 1}) == Strings{"t59", "t143", "g2", "t10"});
  CHECK(lex200_translation({0, 10, 4, 100}) ==
        Strings{"t73", "g0", "t3", "g0", "t103", "g0", "t31"});
}

TEST_CASE("lex200: the sentences never change between versions") {
  const ParallelCorpus corpus = make_lex200();
  CHECK(test::fnv(text_of_pairs(corpus.train)) == 1684820394138312150u);
  CHECK(test::fnv(text_of_pairs(corpus.valid)) == 13041636616043882832u);
  CHECK(test::fnv(text_of_pairs(corpus.test())) == 15238016263410865883u);
}

TEST_CASE("lex200: sizes, lengths, words and topics") {
  const ParallelCorpus corpus = make_lex200();
  CHECK(corpus.train.source.size() == 20000);
  CHECK(corpus.valid.source.size() == 500);
  CHECK(corpus.test().source.size() == 500);
  std::set<std::size_t> lengths;
  std::vector<double> counts(200);
  double words = 0, alike = 0;
  for (std::size_t i = 0; i < corpus.train.source.size(); ++i) {
    const std::vector<int> ranks = ranks_of(corpus.train.source[i]);
    lengths.insert(ranks.size());
    std::vector<int> tens(10);
    for (int rank : ranks) {
      REQUIRE((rank >= 0 && rank < 200));
      ++counts[static_cast<std::size_t>(rank)];
      ++tens[static_cast<std::size_t>(rank % 10)];
    }
    words += static_cast<double>(ranks.size());
    alike += *std::ranges::max_element(tens);
    if (i < 100) {
      CHECK(corpus.train.target[i] == fmt::format("{}", fmt::join(lex200_translation(ranks), " ")));
    }
  }
  CHECK(*lengths.begin() == 4);
  CHECK(*lengths.rbegin() == 14);
  CHECK(lengths.size() == 11);
  // More than half of a sentence's words have the last digit of its topic.
  CHECK(alike / words > 0.5);
  // Within a topic words 3 and 13 are drawn as 1/5 to 1/15, and so they are from all words.
  CHECK(counts[3] / counts[13] == doctest::Approx(3.0).epsilon(0.1));
  CHECK(*std::ranges::min_element(counts) > 0);
}

// A folder with the three splits of a set of two files each.
void write_splits(const TempDir& folder, const Strings& names, const std::string& first,
                  const std::string& second) {
  for (const std::string& name : names) {
    test::write_bytes(folder / fmt::format(fmt::runtime(name), first), "Eins, zwei. Mr. X\nGut!\n");
    test::write_bytes(folder / fmt::format(fmt::runtime(name), second), "It's it.\nTwo\n");
  }
}

TEST_CASE("translation files: Multi30k is tokenized and made lower case") {
  const TempDir folder;
  write_splits(folder, {"train.{}", "val.{}", "test_2016_flickr.{}"}, "de", "en");
  const ParallelCorpus corpus = read_corpus(folder.path(), {});
  CHECK(corpus.name == "de-en");
  CHECK(corpus.train.source == Strings{"eins , zwei . mr. x", "gut !"});
  CHECK(corpus.train.target == Strings{"it &apos;s it .", "two"});
  CHECK(corpus.valid.target == corpus.train.target);
  CHECK(corpus.test().source == corpus.train.source);
  const ParallelCorpus back =
      read_corpus(folder.path(), {.languages = "en-de", .lower_case = false});
  CHECK(back.train.source == Strings{"It &apos;s it .", "Two"});
  CHECK(back.train.target[1] == "Gut !");
}

TEST_CASE("translation files: what is tokenized already stays as it is") {
  const TempDir folder;
  write_splits(folder, {"train.{}", "tst2012.{}", "tst2013.{}"}, "en", "vi");
  const ParallelCorpus viet =
      read_corpus(folder.path(), {.corpus = "iwslt15", .languages = "en-vi"});
  CHECK(viet.train.source[0] == "Eins, zwei. Mr. X");
  write_splits(folder, {"{}-train.txt", "{}-val.txt", "{}-test.txt"}, "src", "targ");
  const ParallelCorpus wmt = read_corpus(folder.path(), {.corpus = "wmt", .languages = "de-en"});
  CHECK(wmt.train.source[0] == "It's it.");
  CHECK(wmt.test().target[1] == "Gut!");
}

TEST_CASE("translation files: IWSLT14 takes the whole training side, or else a sample") {
  const TempDir folder;
  std::filesystem::create_directories(folder / "translation" / "iwslt14-de-en");
  const std::filesystem::path place = folder / "translation" / "iwslt14-de-en";
  for (const std::string name : {"train-sample", "valid", "test"}) {
    for (const std::string language : {"de", "en"}) {
      test::write_bytes(place / (name + "." + language), name + "\n");
    }
  }
  const CorpusOptions options{.corpus = "iwslt14"};
  CHECK(read_corpus(folder.path(), options).train.source == Strings{"train-sample"});
  CHECK(read_corpus(folder.path(), options).origin.ends_with("(a sample)"));
  test::write_bytes(place / "train.de.gz", test::gzip("whole\n"));
  test::write_bytes(place / "train.en", "whole\n");
  CHECK(read_corpus(folder / "translation", options).train.source == Strings{"whole"});
}

TEST_CASE("translation files: Tatoeba keeps the translations of a sentence together") {
  const TempDir folder;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k <= i % 3; ++k)
      text += fmt::format("Say {}!\tSag {} {}!\tsomebody\n", i, i, k);
  }
  test::write_bytes(folder / "deu.txt", text);
  const ParallelCorpus corpus =
      read_corpus(folder.path(), {.corpus = "tatoeba", .languages = "en-de"});
  const SentencePairs test = corpus.test();
  std::set<std::string> seen[3];
  std::size_t pairs = 0, at = 0;
  for (const SentencePairs* part : {&corpus.train, &corpus.valid, &test}) {
    CHECK(part->source.size() == part->target.size());
    seen[at++].insert(part->source.begin(), part->source.end());
    pairs += part->source.size();
  }
  CHECK(pairs == 199);
  CHECK(seen[0].size() == 96);
  CHECK(seen[1].size() == 2);
  CHECK(seen[2].size() == 2);
  CHECK(corpus.raw_targets(task::Split::kValid)[0].starts_with("Sag "));
  for (const std::string& sentence : seen[1]) CHECK_FALSE(seen[0].contains(sentence));
  for (const std::string& sentence : seen[2]) CHECK_FALSE(seen[0].contains(sentence));
  const auto second = [&](std::uint64_t seed) {
    return read_corpus(folder.path(), {.corpus = "tatoeba", .languages = "de-en", .seed = seed})
        .valid.target;
  };
  CHECK(second(0) == corpus.valid.source);
  CHECK(second(1) != corpus.valid.source);
  test::write_bytes(folder / "deu.txt", "One\tEins\nTwo\n");
  CHECK(refuses(ErrorKind::kBadInput, "deu.txt: line 2: expected English, a tab and German",
                [&] { read_corpus(folder.path(), {.corpus = "tatoeba"}); }));
  test::write_bytes(folder / "deu.txt", "One\tEins\n");
  CHECK(refuses(ErrorKind::kBadInput, "expected at least 50 sentences, got 1",
                [&] { read_corpus(folder.path(), {.corpus = "tatoeba"}); }));
}

TEST_CASE("translation files: an empty line keeps its place, and unequal sides are refused") {
  const TempDir folder;
  write_splits(folder, {"train.{}", "val.{}", "test_2016_flickr.{}"}, "de", "en");
  test::write_bytes(folder / "train.de", "a\n\nc");
  test::write_bytes(folder / "train.en", "\nb\u2028b\nc");
  const SentencePairs train = read_corpus(folder.path(), {}).train;
  CHECK(train.source == Strings{"a", "", "c"});
  CHECK(train.target == Strings{"", "b b", "c"});
  test::write_bytes(folder / "train.en", "a\nb\nc\nd\n");
  CHECK(refuses(ErrorKind::kBadInput, "train.de: expected 4 lines, as ",
                [&] { read_corpus(folder.path(), {}); }));
  test::write_bytes(folder / "train.en", "a\nb\xFF\nc\n");
  CHECK(refuses(ErrorKind::kBadInput, "train.en: line 2: expected UTF-8, got ff at byte 2",
                [&] { read_corpus(folder.path(), {}); }));
}

TEST_CASE("translation files: a line that is too long is refused with file and line") {
  const TempDir folder;
  write_splits(folder, {"train.{}", "val.{}", "test_2016_flickr.{}"}, "de", "en");
  test::write_bytes(folder / "train.de", "a\n" + std::string(text::kMaxLineBytes + 1, '.') + "\n");
  CHECK(refuses(ErrorKind::kBadInput,
                "train.de: line 2: expected a line of at most 16777216 bytes, got a longer one",
                [&] { read_corpus(folder.path(), {}); }));
  test::write_bytes(folder / "train.de", "");
  CHECK(refuses(ErrorKind::kBadInput, "train.de: expected content, got an empty file",
                [&] { read_corpus(folder.path(), {}); }));
}

#ifndef __SANITIZE_ADDRESS__

TEST_CASE("translation files: a file of many lines is kept once" * doctest::test_suite("slow")) {
  const TempDir folder;
  write_splits(folder, {"train.{}", "valid.{}", "test.{}"}, "de", "en");
  constexpr std::int64_t kLines = 8192, kBytes = 4096;
  std::string content;
  for (std::int64_t i = 0; i < kLines; ++i) content += std::string(kBytes - 1, 'x') + "\n";
  test::write_bytes(folder / "train.de", content);
  test::write_bytes(folder / "train.en", content);
  const CorpusOptions options{.corpus = "files", .tokenized = true};
  std::size_t lines = 0;
  const std::int64_t growth =
      test::peak_growth([&] { lines = read_corpus(folder.path(), options).train.source.size(); });
  CAPTURE(growth);
  CHECK(lines == kLines);
  CHECK(growth < 2 * kLines * kBytes * 5 / 4);  // of both sides
}

#endif

TEST_CASE("translation files: a test split that is missing is said at once, and read later") {
  const TempDir folder;
  write_splits(folder, {"train.{}", "val.{}"}, "de", "en");
  test::write_bytes(folder / "test_2016_flickr.de", "eins\n");
  CHECK(refuses(ErrorKind::kIo, "expected test_2016_flickr.en, test_2016_flickr.en.gz or",
                [&] { read_corpus(folder.path(), {}); }));
  test::write_bytes(folder / "test_2016_flickr.en", "one\ntwo\n");
  const ParallelCorpus corpus = read_corpus(folder.path(), {});
  CHECK(refuses(ErrorKind::kBadInput, "test_2016_flickr.de: expected 2 lines",
                [&] { corpus.test(); }));
}

TEST_CASE("translation files: a corpus of one's own, of any two languages") {
  const TempDir folder;
  const CorpusOptions options{.corpus = "files", .languages = "fr-en"};
  write_splits(folder, {"train.{}", "dev.{}", "test.{}"}, "fr", "en");
  test::write_bytes(folder / "train.fr", "L'eau, c'est bon.\nBon !\n");
  const ParallelCorpus corpus = read_corpus(folder.path(), options);
  CHECK(corpus.name == "fr-en");
  CHECK(corpus.train.source == Strings{"l&apos; eau , c&apos; est bon .", "bon !"});
  CHECK(corpus.valid.target == Strings{"it &apos;s it .", "two"});
  CHECK(corpus.raw_targets(task::Split::kTest) == Strings{"It's it.", "Two"});
  // The first of several names counts.
  test::write_bytes(folder / "valid.fr", "un\n");
  test::write_bytes(folder / "valid.en", "one\n");
  CHECK(read_corpus(folder.path(), options).valid.target == Strings{"one"});
  CorpusOptions tokens = options;
  tokens.tokenized = true;
  const ParallelCorpus as_it_is = read_corpus(folder.path(), tokens);
  CHECK(as_it_is.train.source[0] == "L'eau, c'est bon.");
  CHECK(as_it_is.raw_targets == nullptr);
  const auto refused = [&](ErrorKind kind, std::string_view text, const CorpusOptions& of) {
    return refuses(kind, text, [&] { read_corpus(folder.path(), of); });
  };
  for (const char* languages : {"fr", "fr-", "-en", "fr-fr", "../x-en"}) {
    CHECK(refused(ErrorKind::kUsage, "languages: expected two names of languages such as fr-en",
                  {.corpus = "files", .languages = languages}));
  }
  CHECK(refused(ErrorKind::kIo, "expected train.es, plain, .gz or .xz, got none",
                {.corpus = "files", .languages = "es-en"}));
  CHECK(refused(ErrorKind::kUsage, "tokenized: the corpus multi30k determines it",
                {.tokenized = true}));
}

TEST_CASE("translation: the form of a user's lines follows from the data set") {
  const auto form = [](const CorpusOptions& options) { return line_form_of(options).text(); };
  CHECK(form({}) == "raw de en lower");
  CHECK(form({.languages = "en-de", .lower_case = false}) == "raw en de cased");
  CHECK(form({.corpus = "files", .languages = "fr-en"}) == "raw fr en lower");
  CHECK(form({.corpus = "files", .languages = "fr-en", .tokenized = true}) == "tokens");
  CHECK(form({.corpus = "tatoeba", .lower_case = false}) == "raw de en cased");
  CHECK(form({.corpus = "iwslt14", .lower_case = false}) == "raw de en lower");
  CHECK(form({.corpus = "iwslt15", .languages = "en-vi"}) == "tokens");
  CHECK(form({.corpus = "wmt"}) == "tokens");
  for (const char* text : {"tokens", "raw de en lower", "raw en fr cased"}) {
    CHECK(LineForm::parse(text).text() == text);
  }
  CHECK(LineForm::parse("raw de en lower").source == "de");
  for (const char* text :
       {"", "raw", "raw de en", "raw de en upper", "token", "raw de en lower x"}) {
    CHECK(refuses(ErrorKind::kBadInput, "form: expected 'tokens', or 'raw', two languages",
                  [&] { LineForm::parse(text); }));
  }
}

TEST_CASE("translation files: the release of IWSLT14 is prepared on the way") {
  const TempDir folder;
  std::filesystem::create_directories(folder / "de-en");
  for (const std::string language : {"de", "en"}) {
    std::string train;
    for (int i = 1; i <= 46; ++i) train += fmt::format("Zeile {}, x\n", i);
    test::write_bytes(folder / ("de-en/train.tags.de-en." + language), train);
    for (const char* part :
         {"TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"}) {
      test::write_bytes(folder / fmt::format("de-en/IWSLT14.{}.de-en.{}.xml", part, language),
                        "<seg id=\"1\"> Von. </seg>\n");
    }
  }
  const ParallelCorpus corpus = read_corpus(folder.path(), {.corpus = "iwslt14"});
  CHECK(corpus.origin.ends_with("de-en (the release)"));
  CHECK(corpus.train.source.size() == 44);
  CHECK(corpus.valid.source == Strings{"zeile 23 , x", "zeile 46 , x"});
  CHECK(corpus.test().target == Strings(5, "von ."));
}

TEST_CASE("translation files: what is missing, and names that are not there") {
  const TempDir folder;
  const auto refused = [&](ErrorKind kind, std::string_view text, const CorpusOptions& options) {
    return refuses(kind, text, [&] { read_corpus(folder.path(), options); });
  };
  CHECK(refused(ErrorKind::kIo,
                "expected train.de, plain, .gz or .xz, there or in its folder multi30k or "
                "translation/multi30k, got none",
                {}));
  CHECK(refused(ErrorKind::kIo, "expected train.en or train-sample.en, plain",
                {.corpus = "iwslt14", .languages = "en-de"}));
  CHECK(refused(ErrorKind::kIo, "expected src-train.txt", {.corpus = "wmt", .languages = "en-de"}));
  CHECK(refused(ErrorKind::kUsage, "corpus: 'multi30' is unknown; nearest: 'multi30k'",
                {.corpus = "multi30"}));
  CHECK(refused(ErrorKind::kUsage, "languages: expected en-vi or vi-en of iwslt15, got 'de-en'",
                {.corpus = "iwslt15"}));
}

TEST_CASE("translation files: the real ones" * doctest::test_suite("slow")) {
  const char* root = std::getenv("KEEL_DATA");
  const std::filesystem::path folder(root != nullptr ? root : "");
  if (root == nullptr || !std::filesystem::exists(folder / "translation")) {
    MESSAGE("skipped: KEEL_DATA names no folder with translation/ in it");
    return;
  }
  const ParallelCorpus multi30k = read_corpus(folder, {});
  CHECK(multi30k.train.source.size() == 29000);
  CHECK(multi30k.valid.source.size() == 1014);
  CHECK(multi30k.test().source.size() == 1000);
  const ParallelCorpus iwslt = read_corpus(folder, {.corpus = "iwslt14"});
  CHECK(iwslt.valid.source.size() == 7283);
  CHECK(iwslt.test().source.size() == 6750);
  const ParallelCorpus tatoeba = read_corpus(folder, {.corpus = "tatoeba"});
  CHECK(tatoeba.train.source.size() + tatoeba.valid.source.size() + tatoeba.test().source.size() ==
        169813);
  CHECK(refuses(ErrorKind::kIo, "expected train.en",
                [&] { read_corpus(folder, {.corpus = "iwslt15", .languages = "en-vi"}); }));
}

}  // namespace
}  // namespace keel::models
