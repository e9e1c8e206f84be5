// Answers to questions that a user gives.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/task/rows_decoder.h"
#include "models/attentive_reader/data.h"

namespace keel::models {

// Each line is a record of question.h, whose answer is ignored and may be `?`. If one of the lines
// has a tab, each is a passage, a tab and a question with one @placeholder, in tokens with blanks
// between. Throws Error{kBadInput} that names the line for any other line.
std::vector<Question> questions_of_lines(std::span<const std::string> lines);

// An answer is a token: a word, or the entity as the question calls it, followed by a tab and its
// name if the record has one; `-` if the network names an entity that the question does not have.
class Answerer final : public task::RowsDecoder {
 public:
  Answerer(std::vector<Question> questions, std::shared_ptr<const ReaderNumbers> numbers,
           std::int64_t sentences);

  std::int64_t size() const override { return std::ssize(questions_); }
  std::vector<std::string> answers() const override { return answers_; }

 private:
  void answer(std::int64_t row, std::int64_t place,
              const std::map<std::string, Tensor>& predictions) override;
  std::string answer_of(std::int64_t row, std::int32_t number) const;

  std::vector<Question> questions_;
  std::shared_ptr<const ReaderNumbers> numbers_;
  std::shared_ptr<const QuestionRows> rows_;
  std::vector<std::string> answers_;
};

}  // namespace keel::models
