// The questions of a data set, prepared and numbered, as streams.
#pragma once

#include <memory>
#include <string>

#include "models/attentive_reader/files.h"
#include "models/attentive_reader/question_stream.h"

namespace keel::models {

struct ReaderDataOptions {
  std::string source = "builtin";  // who-did, or a folder of files.h
  QuestionFileOptions files = {};
  std::int64_t sentences = 0;   // that stay of a passage (sentences.h); 0: all
  std::int64_t longest = 1000;  // tokens of a passage, or of a question, to train on
  std::int64_t max_words = 0;   // ReaderNumbers
  std::int64_t train_rows = 0;  // train on the first so many; 0: all
  std::shared_ptr<const ReaderNumbers> numbers = nullptr;  // null: made of the training questions
};

// Training leaves out, and names, what is longer than `longest`, and questions whose answer has no
// number; evaluation leaves out nothing, and counts such answers as not found.
class ReaderData final : public task::Splits {
 public:
  // Reads what training needs; the test split only has to be there. Throws as files.h says.
  static ReaderData load(const ReaderDataOptions& options);

  const std::shared_ptr<const ReaderNumbers>& numbers() const { return numbers_; }
  // The test split is read here.
  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options) const override;

 private:
  ReaderData(QuestionCorpus corpus, const ReaderDataOptions& options);
  NumberedQuestions training_questions(std::vector<task::LeftOut>& left_out) const;
  NumberedQuestions questions_of(task::Split split) const;

  QuestionCorpus corpus_;
  ReaderDataOptions options_;
  std::shared_ptr<const ReaderNumbers> numbers_;
};

// Throws Error{kBadInput} that begins with `where` for a passage or a question of more tokens than
// kMostQuestionTokens.
void expect_few_tokens(const Question& question, const std::string& where);

}  // namespace keel::models
