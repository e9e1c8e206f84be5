// The images and captions of a data set with numbers for their words, as streams.
#pragma once

#include <memory>
#include <string>

#include "frontend/text/vocabulary.h"
#include "models/order_embeddings/caption_stream.h"
#include "models/order_embeddings/files.h"

namespace keel::models {

struct CaptionDataOptions {
  std::string source = "builtin";  // shapes, or a folder of files.h
  CaptionFileOptions files = {};
  std::int64_t train_rows = 0, valid_rows = 0;  // images, the first so many; 0: all
  std::int64_t fold = 1000;
  // Numbers the words; null: one is made of all words of the training and validation captions.
  std::shared_ptr<const text::Vocabulary> vocabulary = nullptr;
};

class CaptionData final : public task::Splits {
 public:
  // Reads what training needs; the test split only has to be there. Throws as files.h says.
  static CaptionData load(const CaptionDataOptions& options);

  const std::shared_ptr<const text::Vocabulary>& vocabulary() const { return vocabulary_; }
  std::int64_t feature_width() const { return corpus_.train.features.shape()[1]; }
  // The test split is read here. Throws Error{kBadInput} when its features have another width.
  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options) const override;

 private:
  CaptionData(CaptionCorpus corpus, const CaptionDataOptions& options);

  CaptionCorpus corpus_;
  std::int64_t fold_;
  std::shared_ptr<const text::Vocabulary> vocabulary_;
};

}  // namespace keel::models
