// The sentences of the text classifier: files or the generator, words as numbers, batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/data/text_stream.h"
#include "frontend/text/vocabulary.h"
#include "models/text_classifier/corpus.h"

namespace keel::models {

struct TextOptions {
  std::string source = "builtin";  // or a folder with the files that files.h or own_files.h names
  std::string task = "rt";         // "rt": two classes; "sst5": five; "files": a user's own
  std::uint64_t seed = 0;          // of random splits; generated sentences have their own key
  std::int64_t min_count = 2;      // training words that occur less often have no number
  std::int64_t train_rows = 0;     // train on the first so many; 0: all
  bool lower_case = true;
  // Numbers the words; null: one is made of the training sentences.
  std::shared_ptr<const text::Vocabulary> vocabulary = nullptr;
  std::vector<std::string> labels = {};  // the classes; empty: those of the training sentences
};

class TextData {
 public:
  // Reads what is needed for training; a file of test sentences only has to be there. Throws
  // Error{kUsage} for options, Error{kBadInput} for data of other classes than those of the
  // options, and otherwise as files.h and own_files.h say.
  static TextData load(const TextOptions& options);

  // The names of the classes, by their numbers.
  const std::vector<std::string>& labels() const { return corpus_.labels; }
  const text::Vocabulary& vocabulary() const { return *vocabulary_; }
  std::shared_ptr<const text::Vocabulary> shared_vocabulary() const { return vocabulary_; }

  // The batches of a split: sizes {rows, length}, values tokens, mask and label (text_stream.h).
  // The test split is read here.
  std::unique_ptr<data::TextStream> stream(task::Split split,
                                           const data::TokenBatchOptions& options) const;

 private:
  TextData(Corpus corpus, const TextOptions& options);

  Corpus corpus_;
  std::shared_ptr<const text::Vocabulary> vocabulary_;
};

}  // namespace keel::models
