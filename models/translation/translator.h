// Translations of sentences, found by beam search with the network that is trained.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/translation/beam_search.h"
#include "models/translation/data.h"
#include "models/translation/pair_batch.h"

namespace keel::models {

// Sentences that belong together, and what they are to be compared with.
struct TranslationTask {
  TranslationSubwords subwords;
  std::vector<std::string> sources;
  std::vector<std::string> references = {};  // as many, or none: then there is no BLEU
};

// Asks the network about the beginnings of translations, position by position. Sentences of like
// lengths share a batch, with a row for each of their hypotheses; as each has its own limit and its
// own end, and a row does not depend on those beside it, a translation is the same whatever else is
// translated. An empty sentence has the empty translation.
//
// The answers are the translations in words, sub-words joined. The ratio "bleu" is the BLEU of
// their words against those of the references, in per cent, as a sum with the count 1.
class Translator final : public task::Decoder {
 public:
  Translator(TranslationTask task, const BeamOptions& options);

  std::int64_t size() const override { return std::ssize(task_.sources); }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override { return answers_; }
  std::map<std::string, task::Ratio> ratios() const override;

 private:
  // A sentence that is being translated.
  struct Slot {
    std::size_t sentence;
    BeamSearch search;
  };

  void begin_group();
  void end_group();
  bool group_is_done() const;
  void put_row(std::size_t place, const Slot& slot, const BeamSearch::Hypothesis& hypothesis);

  TranslationTask task_;
  BeamOptions options_;
  std::vector<std::vector<std::int32_t>> sources_;  // in numbers
  std::vector<std::size_t> order_;                  // of those that are not empty
  std::size_t begun_ = 0;                           // of the order
  std::vector<Slot> group_;
  std::int64_t group_rows_ = 0, source_length_ = 0;
  std::vector<std::string> answers_;
  task::Batch batch_;
};

}  // namespace keel::models
