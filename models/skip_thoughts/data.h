// The sentences of skip-thoughts: files or the generator, words as numbers, batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "frontend/text/dictionary.h"
#include "models/skip_thoughts/triples.h"

namespace keel::models {

struct ThoughtDataOptions {
  std::string source = "builtin";  // or a folder with what files.h names
  std::int64_t symbols = 20000;    // of the dictionary, at the most, its own four among them
  std::int64_t most_words = 30;    // sentences that are longer, and their neighbours, are left out
  std::int64_t train_rows = 0;     // train on the first so many sentences; 0: all
  bool lower_case = true;
  // Numbers the words; null: one is made of the training sentences.
  std::shared_ptr<const text::Dictionary> dictionary = nullptr;
};

class ThoughtData {
 public:
  // Reads what is needed for training. Throws as files.h says.
  static ThoughtData load(const ThoughtDataOptions& options);

  std::shared_ptr<const text::Dictionary> dictionary() const { return dictionary_; }
  // The test split is read here.
  std::unique_ptr<task::Stream> stream(task::Split split, const task::StreamOptions& options) const;

 private:
  ThoughtData(OrderedText text, const ThoughtDataOptions& options);

  OrderedText text_;
  std::int64_t most_words_;
  std::shared_ptr<const text::Dictionary> dictionary_;
};

// The training, validation or test sentences of a source.
OrderedText load_ordered_text(const ThoughtDataOptions& options);

}  // namespace keel::models
