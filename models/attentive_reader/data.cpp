#include "models/attentive_reader/data.h"

#include <algorithm>
#include <utility>

#include "models/attentive_reader/sentences.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

Question shortened(const Question& question, std::int64_t sentences) {
  Question result = question;
  result.passage = best_sentences(question.passage, question.question, sentences);
  return result;
}

// The questions that are fit to train on; adds the others to `notes`.
std::vector<NumberedQuestion> training_questions(std::vector<NumberedQuestion> all,
                                                 std::int64_t longest, data::SplitNotes& notes) {
  const auto leave_out = [&](std::string why, const auto& is_unfit) {
    const auto count = std::int64_t(std::erase_if(all, is_unfit));
    if (count > 0) notes.skipped.push_back({count, std::move(why)});
  };
  const std::size_t questions = all.size();
  leave_out(fmt::format("more than {} tokens", longest), [&](const NumberedQuestion& q) {
    return std::max(std::ssize(q.passage), std::ssize(q.question)) > longest;
  });
  leave_out("the answer is an unknown word",
            [](const NumberedQuestion& q) { return q.answer == text::Vocabulary::kPad; });
  check(!all.empty(), ErrorKind::kBadInput,
        "[attentive_reader] {}: expected questions to train on, got none of {} that is fit",
        notes.source, questions);
  return all;
}

}  // namespace

void expect_few_tokens(const Question& question, const std::string& where) {
  const std::size_t tokens = std::max(question.passage.size(), question.question.size());
  check(std::int64_t(tokens) <= kMostQuestionTokens, ErrorKind::kBadInput,
        "[attentive_reader] {}: expected at most {} tokens, got {} (model.sentences cuts passages)",
        where, kMostQuestionTokens, tokens);
}

std::shared_ptr<const QuestionRows> question_rows(task::Split split,
                                                  const std::vector<Question>& questions,
                                                  data::SplitNotes notes,
                                                  std::shared_ptr<const ReaderNumbers> numbers,
                                                  const ReaderDataOptions& options) {
  const bool trains = split == task::Split::kTrain;
  std::vector<NumberedQuestion> numbered;
  for (const Question& question : questions) {
    const Question kept = shortened(question, options.sentences);
    if (!trains) {
      expect_few_tokens(kept, fmt::format("{}: question {}", notes.source, numbered.size() + 1));
    }
    numbered.push_back(numbered_question(kept, *numbers));
  }
  if (trains) numbered = training_questions(std::move(numbered), options.longest, notes);
  return std::make_shared<const QuestionRows>(std::move(notes), std::move(numbered),
                                              std::move(numbers));
}

}  // namespace keel::models
