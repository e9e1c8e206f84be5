// Files of questions, of bAbI and of LAMBADA, and what is broken in them.
#include <doctest/doctest.h>

#include "frontend/text/lines.h"
#include "models/attentive_reader/cloze.h"
#include "models/attentive_reader/files.h"
#include "models/attentive_reader/model.h"
#include "tests/support/cost.h"
#include "tests/support/input_checks.h"
#include "tests/support/tar.h"

namespace keel::models {
namespace {

using Tokens = std::vector<std::string>;
using test::refuses;
using test::TempDir;
using test::write_bytes;

constexpr const char* kRecord =
    "http://x/1\n\n@entity1 saw\n@entity0 .\n\n@placeholder saw @entity0\n\n@entity1\n\n"
    "@entity0:Ann\n@entity1:Bob : B\n\n";

TEST_CASE("questions: records one after the other, with names of entities or without") {
  const std::vector<Question> read = read_questions(
      std::string(kRecord) + "http://x/2\r\n\r\n\r\na b\r\n \r\nb @placeholder\r\n\r\nc", "file");
  REQUIRE(read.size() == 2);
  CHECK(read[0].passage == TokenText{"@entity1", "saw", "@entity0", "."});
  CHECK(read[0].question == Tokens{"@placeholder", "saw", "@entity0"});
  CHECK(read[0].answer == "@entity1");
  CHECK(read[0].names.at("@entity1") == "Bob : B");
  CHECK(read[1].passage == TokenText{"a", "b"});
  CHECK(read[1].answer == "c");
  CHECK(read[1].names.empty());
  CHECK(read_questions("\n\n", "file").empty());
  const std::string text = text_of_question(read[0], "u") + text_of_question(read[1], "u");
  const std::vector<Question> again = read_questions(text, "file");
  REQUIRE(again.size() == 2);
  CHECK(again[0].names == read[0].names);
  CHECK(again[1].question == read[1].question);
}

TEST_CASE("questions: what is missing or broken is said with file and line") {
  const auto refused = [](const std::string& text, const char* part) {
    CHECK(refuses(ErrorKind::kBadInput, part, [&] { read_questions(text, "file"); }));
  };
  const std::string first = kRecord;
  refused(first + "u\n\na b\n\nb @placeholder\n",
          "file: line 13: expected the answer of the question that begins there, got the end");
  refused("u\n\na b\n\nb @placeholder\n\n@entity0:x\n",
          "file: line 1: expected the answer of the question that begins there, got the names");
  refused("u\n\na b\n\nb @placeholder\n\n" + first,
          "file: line 1: expected the answer of the question that begins there, got the address in "
          "line 7");
  refused("u\n\na b\n", "line 1: expected the question of the question that begins there");
  refused("u\n", "line 1: expected the passage");
  refused("u\n\na b\n\nb c\n\nd\n",
          "file: line 5: expected a question with one @placeholder, got 0");
  refused("u\n\na\n\n@placeholder @placeholder\n\nd\n", "line 5: expected a question with one");
  refused("u\n\na\n\n@placeholder\n\nd e\n",
          "file: line 7: expected an answer of one token, got 'd e'");
  refused("u\n\na\n\n@placeholder\n\nd\n\n@entity0:x\nno entity\n",
          "file: line 10: expected @entityN:name, got 'no entity'");
  refused("u\n\na\n\n@placeholder\n\nd\n\n@entityX:x\n", "line 9: expected @entityN:name");
}

TEST_CASE("questions: a record that is too long is refused with file and line") {
  const std::string passage(text::kMaxLineBytes / 2, 'x');
  const std::string end = "\n\nb @placeholder\n\nc\n\n";
  const std::string fits = "u\n\n" + passage + "\n" + end;
  CHECK(read_questions(fits + fits, "file").size() == 2);
  CHECK(refuses(ErrorKind::kBadInput,
                "file: line 10: expected a record of at most 16777216 bytes to begin there, got a "
                "longer one",
                [&] { read_questions(fits + "u\n\n" + passage + "\n" + passage + end, "file"); }));
}

#ifndef __SANITIZE_ADDRESS__

// A token of one letter takes two bytes, a line of a passage none. While the text grows, by
// doubling, its old and its new place together take at most three times its bytes, which is six a
// token; two more are for all else.
TEST_CASE("questions: a passage takes little more memory than its text") {
  constexpr std::int64_t kTokens = 1 << 20;
  std::string text = "u\n\n";
  for (std::int64_t i = 0; i < kTokens; ++i) text += i % 2 == 0 ? "a " : "a\n";
  text += "\n\nb @placeholder\n\nc\n";
  std::vector<Question> read;
  const std::int64_t growth = test::peak_growth([&] { read = read_questions(text, "file"); });
  CAPTURE(growth);
  CHECK(std::int64_t(read.at(0).passage.size()) == kTokens);
  CHECK(growth >= 2 * kTokens);
  CHECK(growth < 8 * kTokens);
}

#endif

QuestionCorpus corpus_in(const TempDir& folder, QuestionForm form = QuestionForm::kQuestions) {
  return read_question_corpus(folder.path(), {.form = form});
}

TEST_CASE("question files: folders of them, or one for each part, and bytes that are not UTF-8") {
  const TempDir folder;
  const auto says = [&](ErrorKind kind, std::string_view part) {
    CHECK(refuses(kind, part, [&] { corpus_in(folder); }));
  };
  says(ErrorKind::kIo, "expected a folder training with *.question");
  write_bytes(folder / "training.question", std::string(kRecord) + kRecord);
  says(ErrorKind::kIo, "expected a folder validation, or validation.question, got neither");
  write_bytes(folder / "validation.question", kRecord);
  write_bytes(folder / "test.question", "no record");
  CHECK(corpus_in(folder).train.size() == 2);
  CHECK(refuses(ErrorKind::kBadInput, "test.question: line 1: expected the passage",
                [&] { corpus_in(folder).test(); }));
  std::filesystem::create_directories(folder / "questions/training");
  says(ErrorKind::kIo, "training: expected *.question, got none");
  for (const char* name : {"a", "b", "c"}) {
    write_bytes(folder / fmt::format("questions/training/{}.question", name), kRecord);
  }
  write_bytes(folder / "questions/training/notes.txt", "no record");
  CHECK(corpus_in(folder).train.size() == 3);
  write_bytes(folder / "questions/training/b.question", "u\n\na\xFF\n");
  says(ErrorKind::kBadInput, "b.question: line 3: expected UTF-8, got ff at byte 2");
}

TEST_CASE("bAbI: stories with questions, the answer being a word of them or another one") {
  const std::vector<Question> read = read_babi(
      "1 Mary went to the Garden.\n2 John left.\n3 Where is Mary? \tgarden\t1\n"
      "4 Is John here?\tNo\t2\n5 Mary left.\n6 Who left first?\tJohn \t2 5\n"
      "1 Ann sat.\n2 Who sat?\tAnn\t1\n3 Which way?\tn,w\t1\n",
      "file");
  REQUIRE(read.size() == 5);
  CHECK(read[0].passage ==
        TokenText{"mary", "went", "to", "the", "garden", ".", "john", "left", "."});
  CHECK(read[0].question == Tokens{"where", "is", "mary", "?", "@placeholder"});
  CHECK(read[0].answer == "garden");
  CHECK(read[1].passage == read[0].passage);
  CHECK(read[1].answer == "no");
  CHECK(read[2].passage.size() == 12);
  CHECK(read[2].answer == "john");
  CHECK(read[3].passage == TokenText{"ann", "sat", "."});
  CHECK(read[4].answer == "n,w");
  const auto refused = [](const char* text, const char* part) {
    CHECK(refuses(ErrorKind::kBadInput, part, [&] { read_babi(text, "file"); }));
  };
  refused("1 A b.\nno number\n", "file: line 2: expected a number and text, got 'no number'");
  refused("1 A b.\n3 C d.\n", "file: line 2: expected the number 1 or 2, got 3");
  refused("1 A b?\tA\t1\n", "file: line 1: expected a story before the question");
  refused("1 A b.\n2 A?\t\t1\n",
          "file: line 2: expected an answer of one word after the tab, got ''");
  refused("1 A b.\n2 A?\tto b\t1\n", "expected an answer of one word after the tab, got 'to b'");
  std::string story;
  for (int i = 1; i <= 2001; ++i) story += fmt::format("{} A b c d .\n", i);
  refused(story.c_str(),
          "file: line 2001: expected a story of at most 10000 tokens to end there, got 10005");
}

TEST_CASE("bAbI: an archive of files, all tasks or one, a tenth of training for validation") {
  std::string train, test;
  for (int i = 0; i < 20; ++i) train += "1 Ann sat.\n2 Who sat?\tAnn\t1\n";
  for (int i = 0; i < 3; ++i) test += "1 Bob sat.\n2 Who sat?\tBob\t1\n3 How many?\ttwo\t1\n";
  const TempDir folder;
  CHECK(refuses(ErrorKind::kIo, "in babi-en.tar, plain, .gz or .xz, or in a folder babi-en",
                [&] { corpus_in(folder, QuestionForm::kBabi); }));
  const std::string archive = test::tar({{"babi-en/qa1_a_train.txt", train},
                                         {"babi-en/qa1_a_test.txt", test},
                                         {"babi-en/qa12_b_train.txt", train},
                                         {"babi-en/qa12_b_test.txt", test},
                                         {"babi-en/README.txt", "no story"}});
  write_bytes(folder / "babi-en.tar.gz", test::gzip(archive));
  const auto load = [&](std::int64_t task) {
    return read_question_corpus(folder.path(), {.form = QuestionForm::kBabi, .babi_task = task});
  };
  CHECK(load(0).train.size() == 36);
  CHECK(load(0).valid.size() == 4);
  CHECK(load(0).test().size() == 12);
  CHECK(load(12).test()[1].answer == "two");
  CHECK(load(12).train.size() == 18);
  CHECK(load(12).name == "task 12 questions");
  CHECK(load(12).skipped.empty());
  CHECK(refuses(ErrorKind::kIo, "babi-en.tar.gz: expected qa3_*_train.txt, got none",
                [&] { load(3); }));
  write_bytes(folder / "babi-en.tar.gz", test::gzip("1 Ann" + std::string(600, 'x')));
  CHECK(refuses(ErrorKind::kBadInput, "byte 0: expected a whole tar archive", [&] { load(1); }));
}

TEST_CASE("LAMBADA: the last word, its sentence and those before") {
  const Converted read = read_lambada(
      "{\"text\": \"Ann sat. \\\"Why?\\\" She saw Bob\"}\n{\"text\": \"One sentence only\"}\n",
      "file");
  CHECK(read.without == 1);
  REQUIRE(read.questions.size() == 1);
  CHECK(read.questions[0].passage == TokenText{"ann", "sat", ".", "\"", "why", "?"});
  CHECK(read.questions[0].question == Tokens{"\"", "she", "saw", "@placeholder"});
  CHECK(read.questions[0].answer == "bob");
  const auto refused = [](const char* text, const char* part) {
    CHECK(refuses(ErrorKind::kBadInput, part, [&] { read_lambada(text, "file"); }));
  };
  refused("{\"text\": \"a. b\"}\n{\"txt\": 1}\n", "file: line 2: expected a JSON object");
  refused("{\"text\": 5}", "file: line 1: expected a JSON object");
  refused("[", "file: line 1: expected a JSON object");
  refused("{\"text\": \"one\"}", "file: line 1: expected a text of two words or more, got 1");
  const TempDir folder;
  CHECK(refuses(ErrorKind::kIo, "expected lambada_test.jsonl",
                [&] { corpus_in(folder, QuestionForm::kLambada); }));
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += fmt::format("{{\"text\": \"A b. C d{}\"}}\n", i);
  write_bytes(folder / "lambada_test.jsonl", lines);
  const QuestionCorpus corpus = corpus_in(folder, QuestionForm::kLambada);
  CHECK(corpus.train.size() == 24);
  CHECK(corpus.valid.size() == 3);
  CHECK(corpus.test().size() == 3);
}

TEST_CASE(
    "reader data: training leaves out what is too long or has no answer, evaluation nothing") {
  const TempDir folder;
  std::string training;
  for (int i = 0; i < 5; ++i) training += kRecord;
  training += "u\n\na b c d e f g .\n\nb @placeholder\n\na\n\n";  // eight tokens
  training += "u\n\na b .\n\nb @placeholder\n\nrare\n\n";
  write_bytes(folder / "training.question", training);
  write_bytes(folder / "validation.question",
              std::string(kRecord) + "u\n\na b .\n\nb @placeholder\n\nunheard\n");
  write_bytes(folder / "test.question", kRecord);
  AttentiveReader reader;
  reader.set_option("longest", "7");
  reader.set_option("max_words", "5");
  const auto data = reader.prepare({.source = folder.path().string()}, nullptr).splits;
  const auto train = data->stream(task::Split::kTrain, {.batch = 2, .shuffle = 1});
  CHECK(train->rows() == 5);
  const std::vector<task::Skipped> left = train->skipped();
  REQUIRE(left.size() == 3);
  CHECK(left[0].rows == 1);
  CHECK(left[0].why == "more than 7 tokens");
  CHECK(left[1].rows == 1);
  CHECK(left[1].why == "the answer is an unknown word");
  CHECK(left[2].rows == 1);
  const auto valid = data->stream(task::Split::kValid, {});
  CHECK(valid->rows() == 2);
  CHECK(valid->skipped().empty());
  CHECK(valid->pick(std::vector<std::int64_t>{1}).values[4].at(0) == text::Vocabulary::kPad);
}

}  // namespace
}  // namespace keel::models
