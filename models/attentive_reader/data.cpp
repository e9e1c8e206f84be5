#include "models/attentive_reader/data.h"

#include <algorithm>
#include <array>
#include <utility>

#include "frontend/data/read_ahead.h"
#include "models/attentive_reader/builtin.h"
#include "models/attentive_reader/sentences.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

QuestionCorpus load_questions(const ReaderDataOptions& options) {
  QuestionCorpus corpus = options.source == "builtin"
                              ? make_who_did()
                              : read_question_corpus(options.source, options.files);
  const std::int64_t beyond = std::ssize(corpus.train) - options.train_rows;
  if (options.train_rows > 0 && beyond > 0) {
    corpus.train.resize(std::size_t(options.train_rows));
    corpus.left_out.push_back(
        {beyond, fmt::format("stand behind the first {}", options.train_rows)});
  }
  return corpus;
}

Question shortened(const Question& question, std::int64_t sentences) {
  Question result = question;
  result.passage = best_sentences(question.passage, question.question, sentences);
  return result;
}

}  // namespace

void expect_few_tokens(const Question& question, const std::string& where) {
  const std::size_t tokens = std::max(question.passage.size(), question.question.size());
  check(std::int64_t(tokens) <= kMostQuestionTokens, ErrorKind::kBadInput,
        "[attentive_reader] {}: expected at most {} tokens, got {} (model.sentences cuts passages)",
        where, kMostQuestionTokens, tokens);
}

ReaderData ReaderData::load(const ReaderDataOptions& options) {
  return {load_questions(options), options};
}

ReaderData::ReaderData(QuestionCorpus corpus, const ReaderDataOptions& options)
    : corpus_(std::move(corpus)),
      options_(options),
      numbers_(options.numbers
                   ? options.numbers
                   : std::make_shared<const ReaderNumbers>(corpus_.train, options.max_words)) {}

NumberedQuestions ReaderData::training_questions(std::vector<task::LeftOut>& left_out) const {
  NumberedQuestions numbered;
  std::int64_t too_long = 0, unanswerable = 0;
  for (const Question& question : corpus_.train) {
    NumberedQuestion next = numbered_question(shortened(question, options_.sentences), *numbers_);
    if (std::max(std::ssize(next.passage), std::ssize(next.question)) > options_.longest) {
      ++too_long;
    } else if (next.answer == text::Vocabulary::kPad) {
      ++unanswerable;
    } else {
      numbered.push_back(std::move(next));
    }
  }
  left_out = corpus_.left_out;
  if (too_long > 0) {
    left_out.push_back({too_long, fmt::format("have more than {} tokens", options_.longest)});
  }
  if (unanswerable > 0) left_out.push_back({unanswerable, "have an unknown word for an answer"});
  check(!numbered.empty(), ErrorKind::kBadInput,
        "[attentive_reader] {}: expected questions to train on, got none of {} that is fit",
        corpus_.origin, corpus_.train.size());
  return numbered;
}

NumberedQuestions ReaderData::questions_of(task::Split split) const {
  std::vector<Question> test;
  if (split == task::Split::kTest) test = corpus_.test();
  const std::vector<Question>& all = split == task::Split::kTest    ? test
                                     : split == task::Split::kTrain ? corpus_.train
                                                                    : corpus_.valid;
  NumberedQuestions numbered;
  for (const Question& question : all) {
    const Question kept = shortened(question, options_.sentences);
    expect_few_tokens(kept, fmt::format("{}: question {}", corpus_.origin, numbered.size() + 1));
    numbered.push_back(numbered_question(kept, *numbers_));
  }
  return numbered;
}

std::unique_ptr<task::Stream> ReaderData::stream(task::Split split,
                                                 const task::StreamOptions& options) const {
  constexpr std::array<const char*, 3> kNames = {"train", "valid", "test"};
  data::StreamNotes notes{
      fmt::format("{} {}, {}", corpus_.name, kNames[std::size_t(split)], corpus_.origin), {}};
  const bool trains = split == task::Split::kTrain;
  auto questions = std::make_shared<const NumberedQuestions>(
      trains ? training_questions(notes.left_out) : questions_of(split));
  auto stream =
      std::make_unique<QuestionStream>(std::move(notes), std::move(questions), numbers_,
                                       QuestionBatchOptions{options.batch, options.shuffle});
  if (!options.shuffle) return stream;
  return std::make_unique<data::ReadAhead>(std::move(stream));
}

}  // namespace keel::models
