// The reader's questions: facts, sentences, numbers of entities, and batches.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "models/attentive_reader/answerer.h"
#include "models/attentive_reader/builtin.h"
#include "models/attentive_reader/sentences.h"
#include "tests/models/reader_questions.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using Tokens = std::vector<std::string>;
using test::refuses;

TEST_CASE("who-did: always the same facts, of which one alone answers the question") {
  const std::vector<Question> questions = make_who_did_part(task::Split::kTest);
  CHECK(questions.size() == 1000);
  CHECK(make_who_did_part(task::Split::kTrain).size() == 10000);
  const auto text_of = [](const std::vector<Question>& all) {
    std::string text;
    for (const Question& question : all) text += text_of_question(question, "u");
    return test::fnv(text);
  };
  CHECK(text_of(questions) == text_of(make_who_did().test()));
  CHECK(text_of(questions) != text_of(make_who_did().valid));
  for (const Question& question : questions) {
    std::set<std::string> fitting;
    int facts = 0;
    const std::vector<std::string_view> passage = question.passage.views();
    for (std::size_t i = 0; i + 3 < passage.size(); ++i) {
      if (!is_entity(passage[i]) || passage[i + 3] != ".") continue;
      ++facts;
      Tokens asked(passage.begin() + std::ptrdiff_t(i), passage.begin() + std::ptrdiff_t(i) + 4);
      const std::size_t side = question.question[0] == kPlaceholder ? 0 : 2;
      const std::string hidden = std::exchange(asked[side], std::string(kPlaceholder));
      if (asked == question.question) fitting.insert(hidden);
    }
    CHECK(facts == 6);
    CHECK(fitting == std::set{question.answer});
  }
}

TEST_CASE("best sentences: those that share most tokens with the question, in their order") {
  const TokenText passage("a b . c d e ? b c . a ! x c c . rest");
  const Tokens asked = {"b", "c", "."};
  const auto kept = [&](std::int64_t count) {
    return best_sentences(passage, asked, count).text();
  };
  CHECK(kept(0) == "a b . c d e ? b c . a ! x c c . rest");
  CHECK(kept(1) == "b c .");
  CHECK(kept(2) == "b c . x c c .");
  CHECK(kept(3) == "a b . b c . x c c .");
  CHECK(kept(9) == kept(0));
}

TEST_CASE("best sentences: what ends a sentence is no word that it shares") {
  for (const std::string end : {".", "?", "!"}) {
    CAPTURE(end);
    const std::string other = end == "." ? "?" : ".";
    const TokenText passage("x " + end + " c " + other);
    CHECK(best_sentences(passage, {"c", end}, 1).text() == "c " + other);
  }
}

Question question_of(const std::string& passage, const std::string& asked,
                     const std::string& answer) {
  return {TokenText(passage), tokens_of(asked), answer};
}

TEST_CASE("reader numbers: words by how often they come, and entities by themselves") {
  const ReaderNumbers numbers(
      {question_of("@entity7 saw saw @entity2 .", "@entity7 saw @placeholder", "@entity2")}, 0);
  CHECK(numbers.entities() == 8);
  CHECK(numbers.words() == 5);
  CHECK(numbers.vocabulary().id("saw") == 2);
  CHECK(numbers.size() == 13);
  const ReaderNumbers again = ReaderNumbers::parse(numbers.texts());
  CHECK(again.texts() == numbers.texts());
  const ReaderNumbers few({question_of("a a b @entity0", "b @placeholder", "c")}, 2);
  CHECK(few.words() == 4);
  CHECK(few.vocabulary().id("c") == text::Vocabulary::kUnk);
  const NumberedQuestion q =
      numbered_question(question_of("@entity9 b zz @entity4", "@entity4 @placeholder", "c"), few);
  CHECK(q.passage[0] == -1);
  CHECK(q.passage[2] == text::Vocabulary::kUnk);
  CHECK(q.passage[3] == -2);
  CHECK(q.question[0] == -2);
  CHECK(q.answer == text::Vocabulary::kPad);
  CHECK(q.entities == Tokens{"@entity9", "@entity4"});
  CHECK(refuses(ErrorKind::kBadInput, "expected entities, got none", [] {
    ReaderNumbers::parse({{"vocabulary", "<pad> 0\n<unk> 0\n"}});
  }));
  CHECK(refuses(ErrorKind::kBadInput, "entities: expected a number of 0 to 10000, got '-1'", [] {
    ReaderNumbers::parse({{"vocabulary", "<pad> 0\n<unk> 0\n"}, {"entities", "-1"}});
  }));
}

TEST_CASE("drawn entities: all different, each number equally likely, more entities than numbers") {
  const ReaderNumbers numbers({question_of("@entity9 a", "@placeholder", "a")}, 0);
  const Philox random(3, 5, 1);
  std::map<std::int32_t, int> first;
  for (std::int64_t row = 0; row < 4000; ++row) {
    const auto drawn = drawn_entities(4, numbers, random, row);
    CHECK(std::set<std::int32_t>(drawn.begin(), drawn.end()).size() == 4);
    for (const std::int32_t number : drawn) {
      CHECK(number >= numbers.words());
      CHECK(number < numbers.size());
    }
    ++first[drawn[0]];
  }
  // 400 each, with a deviation of 19.
  for (const auto& [number, count] : first) CHECK(std::abs(count - 400) < 100);
  CHECK(first.size() == 10);
  const auto many = drawn_entities(13, numbers, random, 0);
  CHECK(many.size() == 13);
  CHECK(std::set<std::int32_t>(many.begin(), many.end()).size() == 10);
}

struct Streamed {
  std::shared_ptr<const ReaderNumbers> numbers;
  std::unique_ptr<data::DataLoader> stream;

  Streamed(const std::vector<Question>& questions, const task::StreamOptions& options)
      : numbers(std::make_shared<const ReaderNumbers>(questions, 0)) {
    std::vector<NumberedQuestion> numbered;
    for (const Question& q : questions) numbered.push_back(numbered_question(q, *numbers));
    stream = std::make_unique<data::DataLoader>(
        std::make_shared<QuestionRows>(data::SplitNotes{"some"}, std::move(numbered), numbers),
        options);
  }
};

std::vector<Question> some_questions(std::size_t count) {
  std::vector<Question> all = make_who_did_part(task::Split::kValid);
  all.resize(count);
  return all;
}

// A row's passage, question and answer; tokens of the first time only.
struct ReadRow {
  std::vector<std::int32_t> passage, question;
  std::int32_t answer;

  ReadRow(const task::Batch& batch, std::int64_t place)
      : passage(tokens(batch, 0, place)),
        question(tokens(batch, 2, place)),
        answer(batch.values[4].as<std::int32_t>()[std::size_t(place)]) {}

  static std::vector<std::int32_t> tokens(const task::Batch& batch, std::size_t value,
                                          std::int64_t place) {
    const std::int64_t length = batch.values[value].shape()[1];
    std::vector<std::int32_t> row;
    for (std::int64_t t = place * length; t < (place + 1) * length; ++t) {
      if (batch.values[value + 1].at(t) == 1) {
        row.push_back(batch.values[value].as<std::int32_t>()[std::size_t(t)]);
      }
    }
    return row;
  }
};

// Whether `read` is the question with other numbers for its entities, one for each.
bool says_the_same(const ReadRow& read, const Question& question, const ReaderNumbers& numbers) {
  std::map<std::string, std::int32_t> entities;
  std::set<std::int32_t> taken;
  const auto fits = [&](std::string_view token, std::int32_t number) {
    if (!is_entity(token)) return number == numbers.vocabulary().id(token);
    const auto [place, is_new] = entities.try_emplace(std::string(token), number);
    return number >= numbers.words() && place->second == number &&
           (!is_new || taken.insert(number).second);
  };
  const auto all_fit = [&](const auto& tokens, const std::vector<std::int32_t>& read_tokens) {
    return std::ranges::equal(tokens, read_tokens, fits);
  };
  return all_fit(question.passage.views(), read.passage) &&
         all_fit(question.question, read.question) && fits(question.answer, read.answer);
}

TEST_CASE("question rows: entities are numbered anew every epoch, the same throughout a question") {
  const std::vector<Question> questions = some_questions(50);
  Streamed training(questions, {.batch = 8, .shuffle = 5});
  std::map<std::int64_t, std::set<std::vector<std::int32_t>>> passages;
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    for (std::int64_t step = 0; step < training.stream->steps(epoch); ++step) {
      const task::Batch& batch = training.stream->at(epoch, step);
      for (std::int64_t place = 0; place < 8; ++place) {
        const std::int64_t row = batch.rows[std::size_t(place)];
        const ReadRow read(batch, place);
        CHECK(says_the_same(read, questions[std::size_t(row)], *training.numbers));
        CHECK(passages[row].insert(read.passage).second);
      }
    }
  }
  // In evaluation, too, numbers are drawn, and no more than once.
  Streamed valid(questions, {.batch = 7});
  std::set<std::int32_t> answers;
  for (std::int64_t step = 0; step < valid.stream->steps(0); ++step) {
    const task::Batch& batch = valid.stream->at(0, step);
    for (std::int64_t place = 0; place < 7; ++place) {
      const std::int64_t row = batch.rows[std::size_t(place)];
      if (row < 0) continue;
      const ReadRow read(batch, place);
      CHECK(says_the_same(read, questions[std::size_t(row)], *valid.numbers));
      answers.insert(read.answer);
      CHECK(ReadRow(valid.stream->pick(std::vector{row}), 0).passage == read.passage);
      valid.stream->at(0, step);
    }
  }
  CHECK(answers.size() > 10);
}

TEST_CASE("question rows: what the entities are called in a file does not matter") {
  std::vector<Question> questions = some_questions(20), renamed = questions;
  for (Question& question : renamed) {
    test::rename_entities(question, [](int entity) { return 19 - entity; });
  }
  Streamed one(questions, {.batch = 20}), other(renamed, {.batch = 20});
  const task::Batch &a = one.stream->at(0, 0), &b = other.stream->at(0, 0);
  for (const std::size_t value : {0, 2, 4}) {
    CHECK(
        std::ranges::equal(a.values[value].as<std::int32_t>(), b.values[value].as<std::int32_t>()));
  }
}

TEST_CASE("question rows: sequences are repeated to fill their buckets, rows of padding are 0") {
  const std::vector<Question> questions{question_of("a b c", "b @placeholder", "c"),
                                        question_of("a", "@placeholder", "a")};
  Streamed streamed(questions, {.batch = 4});
  const task::Batch& batch = streamed.stream->at(0, 0);
  CHECK(batch.sizes == task::Sizes{2, 16, 8});
  const auto passage = batch.values[0].as<std::int32_t>(),
             asked = batch.values[2].as<std::int32_t>();
  const text::Vocabulary& words = streamed.numbers->vocabulary();
  const std::int64_t first = batch.rows[0] == 0 ? 0 : 1;
  for (std::size_t t = 0; t < 16; ++t) {
    CHECK(passage[std::size_t(first) * 16 + t] == words.id(std::string(1, "abc"[t % 3])));
    CHECK(batch.values[1].at(first * 16 + std::int64_t(t)) == (t < 3 ? 1 : 0));
  }
  CHECK(asked[std::size_t(first) * 8 + 6] == words.id("b"));
  const task::Batch& one = streamed.stream->pick(std::vector<std::int64_t>{1});
  CHECK(one.sizes == task::Sizes{1, 16, 8});
  Streamed three({questions[0], questions[1], questions[0]}, {.batch = 2});
  const task::Batch& last = three.stream->at(0, 1);
  CHECK(last.rows[1] == -1);
  CHECK(last.values[4].at(1) == -1);
  CHECK(last.values[1].at(16) == 0);
}

TEST_CASE("answerer: answers in the question's own words") {
  const std::vector<Question> known = some_questions(5);
  const auto numbers = std::make_shared<const ReaderNumbers>(known, 0);
  const Tokens lines{
      "here", "", "@entity3 met @entity8 .", "",          "@placeholder met @entity8 .", "",
      "?",    "", "@entity3:Ann B",          "@entity8:C"};
  std::vector<Question> asked = questions_of_lines(lines);
  REQUIRE(asked.size() == 1);
  const std::vector<Question> by_tab =
      questions_of_lines(Tokens{"@entity3 met @entity8 .\t@placeholder met @entity8 ."});
  CHECK(by_tab.at(0).question == asked[0].question);
  const auto said = [&](const std::vector<Question>& questions, auto number_of) {
    Answerer answerer(questions, numbers, 0);
    const task::Batch* batch = answerer.next();
    REQUIRE(batch != nullptr);
    std::map<std::string, Tensor> predictions;
    predictions["answer"] = Tensor::of<std::int32_t>({1, 1}, {number_of(*batch)});
    answerer.take(predictions);
    CHECK(answerer.next() == nullptr);
    return answerer.answers().at(0);
  };
  const auto token = [](std::size_t t) {
    return [t](const task::Batch& batch) { return batch.values[0].as<std::int32_t>()[t]; };
  };
  CHECK(said(asked, token(0)) == "@entity3\tAnn B");
  CHECK(said(by_tab, token(0)) == "@entity3");
  CHECK(said(asked, token(2)) == "@entity8\tC");
  CHECK(said(asked, token(1)) == "met");
  CHECK(said(asked, [&](const task::Batch& batch) {
          std::int32_t other = numbers->words();
          while (other == token(0)(batch) || other == token(2)(batch)) ++other;
          return other;
        }) == "-");
  CHECK(questions_of_lines(Tokens{}).empty());
  CHECK(
      refuses(ErrorKind::kBadInput, "standard input: line 2: expected a passage, a tab and a", [] {
        questions_of_lines(Tokens{"a b\t@placeholder", "a b\tc"});
      }));
  CHECK(refuses(ErrorKind::kBadInput, "standard input: line 1: expected UTF-8",
                [] { questions_of_lines(Tokens{"\xFF\t@placeholder"}); }));
}

}  // namespace
}  // namespace keel::models
