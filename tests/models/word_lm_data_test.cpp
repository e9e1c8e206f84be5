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

TEST_CASE("word_lm: a text to train on that is shorter than a segment in every lane") {
  const test::TempDir folder;
  corpus_of(folder, "a b c\n", "a\n", "a\n");
  const std::string source = "data.source=" + folder.path().string();
  const train::Job job = small_job({source, "model.corpus=files"}, "word_lm");
  check_refused([&] { job.splits().stream(task::Split::kTrain, {.batch = 4, .shuffle = 1}); },
                "[lanes]", "expected a text of at least 25 tokens for 4 lanes, got 4");
}

// The lines of a part, and the numbers that they have in their file.
std::pair<std::string, std::vector<std::int64_t>> lines_in(const LineSource& part) {
  std::pair<std::string, std::vector<std::int64_t>> lines;
  part.read([&](const text::Line& line) {
    lines.first += std::string(line.text) + "\n";
    lines.second.push_back(line.number);
  });
  return lines;
}

std::string counted_lines(int from, int to) {
  std::string text;
  for (int line = from; line <= to; ++line) text += fmt::format("w{}\n", line);
  return text;
}

TEST_CASE("word_lm: what is held out of a single file, or of a folder without all parts") {
  const test::TempDir folder;
  test::write_bytes(folder / "train.txt", counted_lines(1, 25));
  for (const std::filesystem::path& source : {folder.path(), folder / "train.txt"}) {
    const WordCorpus corpus = read_word_files(source, WordFiles::kFiles);
    CHECK(lines_in(corpus.parts[0]).first == counted_lines(1, 20));
    CHECK(lines_in(corpus.parts[1]).first == counted_lines(21, 22));
    CHECK(lines_in(corpus.parts[2]).first == counted_lines(23, 25));
    CHECK(lines_in(corpus.parts[2]).second == std::vector<std::int64_t>{23, 24, 25});
    CHECK(corpus.parts[0].name.starts_with("the first 80 % of the lines of "));
    CHECK(corpus.parts[1].name.starts_with("the last tenth but one of "));
    CHECK(corpus.parts[2].name.starts_with("the last tenth of "));
  }
  // A file that is evaluated is whole.
  const WordCorpus whole =
      read_word_files(folder / "train.txt", WordFiles::kFiles, task::Split::kTest);
  CHECK(lines_in(whole.parts[2]).first == counted_lines(1, 25));
  const auto test_of_folder = [&] {
    return lines_in(read_word_files(folder.path(), WordFiles::kFiles, task::Split::kTest).parts[2]);
  };
  CHECK(test_of_folder().first == counted_lines(23, 25));
  test::write_bytes(folder / "dev.txt", "v\n");
  const WordCorpus tested = read_word_files(folder.path(), WordFiles::kFiles);
  CHECK(lines_in(tested.parts[0]).first == counted_lines(1, 22));
  CHECK(lines_in(tested.parts[1]).first == "v\n");
  CHECK(lines_in(tested.parts[2]).first == counted_lines(23, 25));
  test::write_bytes(folder / "test.txt", "t\n");
  const WordCorpus all = read_word_files(folder.path(), WordFiles::kFiles);
  CHECK(lines_in(all.parts[0]).first == counted_lines(1, 25));
  CHECK(lines_in(all.parts[2]).first == "t\n");
  std::filesystem::remove(folder / "train.txt");
  CHECK(test_of_folder().first == "t\n");
  test::write_bytes(folder / "few", counted_lines(1, 9));
  const WordCorpus few = read_word_files(folder / "few", WordFiles::kFiles);
  check_refused([&] { lines_in(few.parts[0]); }, "[word_lm]",
                "few: expected at least 10 lines, of which some are held out, got 9",
                ErrorKind::kBadInput);
}

TEST_CASE("word_lm: data.train_rows cuts the training text alone") {
  const test::TempDir folder;
  corpus_of(folder, "a b\nc d\ne f\n", "a b\nb a\na\n", "b\na b\na b\nb\n");
  const auto tokens = [&](const std::string& rows, task::Split split) {
    const train::Job job = small_job({"data.source=" + folder.path().string(), "model.corpus=files",
                                      "data.train_rows=" + rows, "model.length=2"},
                                     "word_lm");
    const auto stream = job.splits().stream(split, {.batch = 1});
    double items = 0;
    for (std::int64_t step = 0; step < stream->steps(0); ++step) items += stream->items(0, step);
    return items + 1;
  };
  for (const char* rows : {"0", "1", "2"}) {
    CAPTURE(rows);
    CHECK(tokens(rows, task::Split::kValid) == 8);
    CHECK(tokens(rows, task::Split::kTest) == 10);
  }
  CHECK(tokens("0", task::Split::kTrain) == 9);
  CHECK(tokens("1", task::Split::kTrain) == 3);
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
