#include "models/text_classifier/data.h"

#include <utility>
#include <vector>

#include "models/text_classifier/builtin.h"
#include "models/text_classifier/files.h"
#include "models/text_classifier/own_files.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

Corpus load_corpus(const TextOptions& options) {
  const bool sst5 = options.task == "sst5", own = options.task == "files";
  check(options.task == "rt" || sst5 || own, ErrorKind::kUsage,
        "[text_classifier] task: expected rt, sst5 or files, got '{}'", options.task);
  check(options.train_rows >= 0, ErrorKind::kUsage,
        "[text_classifier] train_rows: expected 0 or more, got {}", options.train_rows);
  if (options.source == "builtin") return make_polar(sst5 ? 5 : 2);
  if (own) {
    return read_own_files(
        options.source,
        {.seed = options.seed, .lower_case = options.lower_case, .labels = options.labels});
  }
  return sst5 ? read_sst5(options.source, options.lower_case)
              : read_rt(options.source, options.seed, options.lower_case);
}

text::WordCounts count_words(const Sentences& sentences) {
  text::WordCounts counts;
  for (const text::LabelledSentence& sentence : sentences) {
    for (const std::string& word : sentence.words) ++counts[word];
  }
  return counts;
}

data::LabelledRows number(const Sentences& sentences, const text::Vocabulary& vocabulary) {
  data::LabelledRows rows;
  std::vector<std::int32_t> tokens;
  for (const text::LabelledSentence& sentence : sentences) {
    tokens.clear();
    for (const std::string& word : sentence.words) tokens.push_back(vocabulary.id(word));
    rows.add(tokens, sentence.label);
  }
  return rows;
}

void keep_first(Corpus& corpus, std::int64_t rows) {
  const std::int64_t beyond = std::ssize(corpus.train) - rows;
  if (rows == 0 || beyond <= 0) return;
  corpus.train.resize(static_cast<std::size_t>(rows));
  corpus.left_out.push_back({beyond, fmt::format("train_rows is {}", rows)});
}

}  // namespace

TextData TextData::load(const TextOptions& options) {
  Corpus corpus = load_corpus(options);
  check(options.labels.empty() || options.labels == corpus.labels, ErrorKind::kBadInput,
        "[text_classifier] {}: expected data of the classes {}, got {}", corpus.origin,
        shown_labels(options.labels), shown_labels(corpus.labels));
  keep_first(corpus, options.train_rows);
  return {std::move(corpus), options};
}

TextData::TextData(Corpus corpus, const TextOptions& options)
    : corpus_(std::move(corpus)),
      vocabulary_(options.vocabulary
                      ? options.vocabulary
                      : std::make_shared<const text::Vocabulary>(
                            count_words(corpus_.train),
                            text::VocabularyOptions{.min_count = options.min_count})) {}

std::unique_ptr<data::TextStream> TextData::stream(task::Split split,
                                                   const data::TokenBatchOptions& options) const {
  const bool train = split == task::Split::kTrain, valid = split == task::Split::kValid;
  data::StreamNotes notes{corpus_.sources[static_cast<std::size_t>(split)], {}};
  if (train) notes.left_out = corpus_.left_out;
  data::LabelledRows rows = train   ? number(corpus_.train, *vocabulary_)
                            : valid ? number(corpus_.valid, *vocabulary_)
                                    : number(corpus_.test(), *vocabulary_);
  return std::make_unique<data::TextStream>(std::move(notes), std::move(rows), options);
}

}  // namespace keel::models
