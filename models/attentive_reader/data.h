// The questions of a data set as numbered rows.
#pragma once

#include <memory>
#include <string>

#include "frontend/task/batch.h"
#include "models/attentive_reader/question_rows.h"

namespace keel::models {

struct ReaderDataOptions {
  std::int64_t sentences = 0;   // of a passage that are kept (sentences.h); 0: all
  std::int64_t longest = 1000;  // tokens of a passage, or of a question, to train on
};

// The questions with their passages shortened. Training leaves out, and names, texts longer than
// `longest` and questions whose answer has no number. Evaluation leaves out nothing and counts such
// answers as not found. Throws Error{kBadInput} if no question is left to train on, and as
// expect_few_tokens does.
std::shared_ptr<const QuestionRows> question_rows(task::Split split,
                                                  const std::vector<Question>& questions,
                                                  data::SplitNotes notes,
                                                  std::shared_ptr<const ReaderNumbers> numbers,
                                                  const ReaderDataOptions& options);

// Throws Error{kBadInput} that begins with `where` for a passage or a question of more tokens than
// kMostQuestionTokens.
void expect_few_tokens(const Question& question, const std::string& where);

}  // namespace keel::models
