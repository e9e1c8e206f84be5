// The sentences of the text classifier: files or the generator, words as numbers, batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "frontend/data/text_stream.h"
#include "frontend/text/vocabulary.h"
#include "models/text_classifier/corpus.h"

namespace keel::models {

struct TextOptions {
  std::string source = "builtin";  // or a folder with the files that files.h names
  std::string task = "rt";         // "rt": two classes; "sst5": five
  std::uint64_t seed = 0;          // of the split of RT; generated sentences have their own key
  std::int64_t min_count = 2;      // training words that occur less often have no number
  std::int64_t train_rows = 0;     // train on the first so many; 0: all
  bool lower_case = true;
  // Numbers the words; null: one is made of the training sentences.
  std::shared_ptr<const text::Vocabulary> vocabulary = nullptr;
};

class TextData {
 public:
  // Reads what is needed for training; a file of test sentences only has to be there. Throws
  // Error{kUsage} for options, and otherwise as files.h says.
  static TextData load(const TextOptions& options);

  std::int32_t classes() const { return corpus_.classes; }
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
