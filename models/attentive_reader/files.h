// Questions in files: of the form of question.h, of bAbI and of LAMBADA.
#pragma once

#include <filesystem>
#include <optional>

#include "frontend/task/batch.h"
#include "models/attentive_reader/question.h"
#include "src/core/choice.h"

namespace keel::models {

enum class QuestionForm { kQuestions, kBabi, kLambada };
constexpr auto choice_words(QuestionForm) {
  return std::to_array<std::string_view>({"questions", "babi", "lambada"});
}

struct QuestionFileOptions {
  QuestionForm form = QuestionForm::kQuestions;
  std::int64_t babi_task = 0;                      // 1 to 20; 0: all of them
  std::uint64_t seed = 0;                          // for splitting LAMBADA
  std::optional<task::Split> only = std::nullopt;  // as task::DataRequest::only
};

// Each is looked for in the folder and in its folders `qa` and `cnn`:
//   questions  records in *.question files, one or many in each, in the order of their names. The
//              files lie in the folders training, validation and test, or in those of a folder
//              `questions`. Or one file each: {training,validation,test}.question
//   babi       qaN_*_train.txt and qaN_*_test.txt in babi-en.tar, or such files in a folder
//              babi-en; the last tenth of the questions of each task's training file is for
//              validation
//   lambada    lambada_test.jsonl; its training texts are not published in this form. A tenth each
//              is for validation and for testing, drawn by the seed
// If `only` asks for one split, its files are enough, and a file in place of a folder is the whole
// of that split. Files may be plain, .gz or .xz. Throws Error{kIo} that names the files and folders
// looked for, and Error{kBadInput} with file and line as question.h and cloze.h say.
QuestionCorpus read_question_corpus(const std::filesystem::path& folder,
                                    const QuestionFileOptions& options);

}  // namespace keel::models
