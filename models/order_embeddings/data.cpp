#include "models/order_embeddings/data.h"

#include <array>
#include <utility>

#include "frontend/data/read_ahead.h"
#include "frontend/text/lines.h"
#include "models/order_embeddings/builtin.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

CaptionCorpus load_captions(const CaptionDataOptions& options) {
  CaptionCorpus corpus =
      options.source == "builtin" ? make_shapes() : read_captions(options.source, options.files);
  const std::int64_t train = corpus.train.images(), valid = corpus.valid.images();
  keep_first_images(corpus.train, options.train_rows);
  keep_first_images(corpus.valid, options.valid_rows);
  if (const std::int64_t beyond = train - corpus.train.images(); beyond > 0) {
    corpus.left_out.push_back(
        {beyond, fmt::format("stand behind the first {}", options.train_rows)});
  }
  if (corpus.valid.images() < valid) {
    corpus.origin += fmt::format(", validation on the first {} images", corpus.valid.images());
  }
  return corpus;
}

std::shared_ptr<const text::Vocabulary> count_caption_words(const CaptionCorpus& corpus) {
  text::WordCounts counts;
  for (const DescribedImages* part : {&corpus.train, &corpus.valid}) {
    for (const std::string& caption : part->captions) {
      for (const std::string_view word : text::words_of(caption)) ++counts[std::string(word)];
    }
  }
  return std::make_shared<const text::Vocabulary>(counts, text::VocabularyOptions{});
}

}  // namespace

CaptionData CaptionData::load(const CaptionDataOptions& options) {
  return {load_captions(options), options};
}

CaptionData::CaptionData(CaptionCorpus corpus, const CaptionDataOptions& options)
    : corpus_(std::move(corpus)),
      fold_(options.fold),
      vocabulary_(options.vocabulary ? options.vocabulary : count_caption_words(corpus_)) {}

std::unique_ptr<task::Stream> CaptionData::stream(task::Split split,
                                                  const task::StreamOptions& options) const {
  constexpr std::array<const char*, 3> kNames = {"train", "valid", "test"};
  const char* name = kNames[std::size_t(split)];
  const DescribedImages test = split == task::Split::kTest ? corpus_.test() : DescribedImages{};
  const DescribedImages& images = split == task::Split::kTrain   ? corpus_.train
                                  : split == task::Split::kValid ? corpus_.valid
                                                                 : test;
  check(images.features.shape()[1] == feature_width(), ErrorKind::kBadInput,
        "[order_embeddings] {}: expected features of width {}, as those of training, got {}",
        corpus_.origin, feature_width(), images.features.shape()[1]);
  auto numbered = std::make_shared<NumberedCaptions>();
  numbered->features = images.features.clone();
  for (std::size_t i = 0; i < images.captions.size(); ++i) {
    numbered->add(images.captions[i], *vocabulary_,
                  fmt::format("{} {}: caption {}", corpus_.name, name, i + 1));
  }
  data::StreamNotes notes{fmt::format("{} {}, {}", corpus_.name, name, corpus_.origin), {}};
  if (split == task::Split::kTrain) notes.left_out = corpus_.left_out;
  auto stream =
      std::make_unique<CaptionStream>(std::move(notes), std::move(numbered),
                                      CaptionBatchOptions{options.batch, options.shuffle, fold_});
  if (!options.shuffle) return stream;
  return std::make_unique<data::ReadAhead>(std::move(stream));
}

}  // namespace keel::models
