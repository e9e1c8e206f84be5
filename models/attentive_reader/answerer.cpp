#include "models/attentive_reader/answerer.h"

#include <algorithm>
#include <utility>

#include "frontend/text/text_file.h"
#include "models/attentive_reader/sentences.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr std::int64_t kAskedTogether = 32;  // questions of a user
const std::string kAskedBy = "standard input";

bool has_tab(const std::string& line) { return line.find('\t') != line.npos; }

Question question_of_line(const std::string& line, const std::string& where) {
  const std::size_t tab = std::min(line.find('\t'), line.size());
  Question question{TokenText(line.substr(0, tab)),
                    tokens_of(line.substr(std::min(tab + 1, line.size()))), "?"};
  const auto places = std::ranges::count(question.question, kPlaceholder);
  check(!question.passage.empty() && places == 1, ErrorKind::kBadInput,
        "[attentive_reader] {}: expected a passage, a tab and a question with one {}, got {} words "
        "and {} of them",
        where, kPlaceholder, question.passage.size(), places);
  return question;
}

}  // namespace

std::vector<Question> questions_of_lines(std::span<const std::string> lines) {
  const std::string text = fmt::format("{}\n", fmt::join(lines, "\n"));
  text::expect_text(text, kAskedBy);
  if (std::ranges::none_of(lines, has_tab)) return read_questions(text, kAskedBy);
  std::vector<Question> questions;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    questions.push_back(question_of_line(lines[i], text::place(kAskedBy, std::int64_t(i) + 1)));
  }
  return questions;
}

Answerer::Answerer(std::vector<Question> questions, std::shared_ptr<const ReaderNumbers> numbers,
                   std::int64_t sentences)
    : questions_(std::move(questions)), numbers_(std::move(numbers)), answers_(questions_.size()) {
  if (questions_.empty()) return;
  std::vector<NumberedQuestion> numbered;
  for (Question& question : questions_) {
    question.answer.clear();
    question.passage = best_sentences(question.passage, question.question, sentences);
    expect_few_tokens(question, fmt::format("question {}", numbered.size() + 1));
    numbered.push_back(numbered_question(question, *numbers_));
  }
  rows_ = std::make_shared<const QuestionRows>(data::SplitNotes{kAskedBy}, std::move(numbered),
                                               numbers_);
  ask(rows_, kAskedTogether);
}

void Answerer::answer(std::int64_t row, std::int64_t place,
                      const std::map<std::string, Tensor>& predictions) {
  const std::span<const std::int32_t> said = predictions.at("answer").as<std::int32_t>();
  answers_[std::size_t(row)] = answer_of(row, said[std::size_t(place)]);
}

std::string Answerer::answer_of(std::int64_t row, std::int32_t number) const {
  if (number < numbers_->words()) return numbers_->vocabulary().word(number);
  const std::vector<std::int32_t> entities = rows_->entities_of({.row = row});
  const auto found = std::ranges::find(entities, number);
  if (found == entities.end()) return "-";
  const std::string& entity = rows_->question(row).entities[std::size_t(found - entities.begin())];
  const auto& names = questions_[std::size_t(row)].names;
  const auto name = names.find(entity);
  return name == names.end() ? entity : fmt::format("{}\t{}", entity, name->second);
}

}  // namespace keel::models
