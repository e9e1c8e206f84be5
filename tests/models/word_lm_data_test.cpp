// The text of word language models: files as they are, numbers of words, broken files, and the
// built-in text.
#include <doctest/doctest.h>

#include <cstdlib>

#include "models/word_lm/builtin.h"
#include "models/word_lm/files.h"
#include "tests/models/helpers.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

using test::check_refused;

WordCorpus corpus_of(const test::TempDir& folder, const std::string& train,
                     const std::string& valid = "a\n", const std::string& test = "a\n") {
  test::write_bytes(folder / "train.txt", train);
  test::write_bytes(folder / "valid.txt", valid);
  test::write_bytes(folder / "test.txt", test);
  return read_word_files(folder.path(), WordFiles::kFiles);
}

TEST_CASE("word_lm: every line ends in a word, and an empty line is only that") {
  const test::TempDir folder;
  const WordCorpus corpus = corpus_of(folder, " b a  b \n\n\ta b\n");
  const text::WordCounts counts = count_words(corpus.parts[0], 0);
  CHECK(counts.at("b") == 3);
  CHECK(counts.at("a") == 2);
  CHECK(counts.at("<eos>") == 3);
  const text::Vocabulary words(counts, {});
  // By falling count, equal counts by their bytes; 0 stands for unknown words.
  CHECK(number_of(words, "<eos>") == 1);
  CHECK(number_of(words, "b") == 2);
  CHECK(number_of(words, "a") == 3);
  CHECK(count_of_numbers(words) == 4);
  CHECK(number_words(corpus.parts[0], 0, words) ==
        std::vector<std::int32_t>{2, 3, 2, 1, 1, 3, 2, 1});
  CHECK(number_words(corpus.parts[0], 1, words) == std::vector<std::int32_t>{2, 3, 2, 1});
}

TEST_CASE(
    "word_lm: an unknown word is <unk> if training had one, and else an error with its line") {
  const test::TempDir folder, other;
  const WordCorpus has = corpus_of(folder, "a <unk> b\n", "a c\n");
  CHECK(number_words(has.parts[1], 0, text::Vocabulary(count_words(has.parts[0], 0), {}))[1] == 0);
  const WordCorpus has_not = corpus_of(other, "a b\n", "a\nb c\n");
  const text::Vocabulary words(count_words(has_not.parts[0], 0), {});
  check_refused([&] { number_words(has_not.parts[1], 0, words); }, "[word_lm]",
                "valid.txt: line 2: expected one of the 3 words of the training text, which has no "
                "<unk>, got 'c'",
                ErrorKind::kBadInput);
}

TEST_CASE("word_lm: broken files") {
  const test::TempDir folder;
  const WordCorpus corpus = corpus_of(folder, "a b\nc \xff d\n", "");
  check_refused([&] { count_words(corpus.parts[0], 0); }, "", "train.txt: line 2",
                ErrorKind::kBadInput);
  check_refused([&] { count_words(corpus.parts[1], 0); }, "[word_lm]",
                "valid.txt: expected lines of text, got none", ErrorKind::kBadInput);
  const test::TempDir none;
  check_refused([&] { read_word_files(none.path(), WordFiles::kPtb); }, "[word_lm]",
                "expected ptb.train.txt", ErrorKind::kIo);
}

TEST_CASE("word_lm: a text shorter than a segment in every lane, and a file to train on") {
  const test::TempDir folder;
  corpus_of(folder, "a b c\n", "a\n", "a\n");
  const std::string source = "data.source=" + folder.path().string();
  const train::Job job = small_job({source, "model.corpus=files"}, "word_lm");
  check_refused([&] { job.splits().stream(task::Split::kTrain, {.batch = 4, .shuffle = 1}); },
                "[lanes]", "expected a text of at least 25 tokens for 4 lanes, got 4");
  check_refused([&] { small_job({source + "/train.txt"}, "word_lm"); }, "[word_lm]",
                "expected a folder to train on, got a file");
}

TEST_CASE("word_lm: the forms of a folder begin with the one that is there") {
  const test::TempDir folder;
  test::write_bytes(folder / "wiki.train.tokens", "a\n");
  CHECK(forms_in(folder.path()).front() == WordFiles::kWikitext);
  CHECK(forms_in(test::TempDir().path()).front() == WordFiles::kPtb);
}

TEST_CASE("word_lm: training has every word of the other parts of topic-bigram") {
  const WordCorpus corpus = make_topic_bigram();
  const text::Vocabulary words(count_words(corpus.parts[0], 0), {});
  CHECK(count_of_numbers(words) == 2000 + 2);
  for (const std::size_t part : {1, 2}) {
    const std::vector<std::int32_t> numbers = number_words(corpus.parts[part], 0, words);
    CHECK(numbers.size() > 40 * 40 * 16);
    CHECK(numbers == number_words(corpus.parts[part], 0, words));
  }
}

// The words of each document of a part of topic-bigram, by their ranks from 0 on.
std::vector<std::vector<int>> documents_of(const LineSource& part) {
  std::vector<std::vector<int>> documents;
  part.read([&](const text::Line& line) {
    if (line.number % 40 == 1) documents.emplace_back();
    text::each_word(line.text, [&](std::string_view word) {
      documents.back().push_back(std::stoi(std::string(word.substr(1))));
    });
  });
  return documents;
}

// The topic that most words are of.
int topic_of(const std::vector<int>& words) {
  std::array<int, 20> counts{};
  for (const int word : words) ++counts[std::size_t(word % 20)];
  return int(std::ranges::max_element(counts) - counts.begin());
}

TEST_CASE("word_lm: the words of a topic are those of all, restricted to it") {
  double first = 0, all = 0;
  for (const std::vector<int>& words : documents_of(make_topic_bigram().parts[0])) {
    if (topic_of(words) != 0) continue;
    all += double(words.size());
    first += double(std::ranges::count(words, 0));
  }
  double of_topic = 0, of_all = 0;
  for (int rank = 1; rank <= 2000; ++rank) {
    of_all += 1.0 / rank;
    if (rank % 20 == 1) of_topic += 1.0 / rank;
  }
  // A line of 16 words on average begins with one that has no word before it. A successor is word 0
  // where the word before is 1999 * 13^-1 or so, which is rare.
  const double expected = 0.5 / of_topic + (0.2 + 0.3 / 16) / of_all;
  CHECK(first / all == doctest::Approx(expected).epsilon(0.03));
}

TEST_CASE("word_lm: PTB has the published numbers of tokens and words") {
  const char* data = std::getenv("KEEL_DATA");
  if (data == nullptr) {
    MESSAGE("skipped: KEEL_DATA is not set");
    return;
  }
  const WordCorpus corpus = read_word_files(data, WordFiles::kPtb);
  const text::Vocabulary words(count_words(corpus.parts[0], 0), {});
  CHECK(count_of_numbers(words) == 10000);
  const std::size_t tokens[] = {929589, 73760, 82430};
  for (std::size_t part = 0; part < 3; ++part) {
    CHECK(number_words(corpus.parts[part], 0, words).size() == tokens[part]);
  }
}

}  // namespace
}  // namespace keel::models
