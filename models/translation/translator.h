// Translations of sentences, found by beam search with the network that is trained.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/translation/beam_search.h"
#include "models/translation/data.h"
#include "models/translation/search_group.h"

namespace keel::models {

// Sentences that belong together, and what they are to be compared with.
struct TranslationTask {
  TranslationSubwords subwords;
  std::vector<std::string> sources;
  std::vector<std::string> references = {};  // as many, or none: then there is no BLEU
  // The references as people wrote them, when they are asked for; empty: they are put together from
  // their tokens.
  std::function<std::vector<std::string>()> raw_references = {};
  std::string origin = "";      // where the sources stand, for errors
  std::int64_t first = 1;       // the number of the first of them there
  std::string language = "en";  // of the translations
  bool lower_case = false;      // whether their words are, whatever the raw references are
  bool as_text = false;         // answers are text as people write it; otherwise tokens
};

struct SearchOptions {
  BeamOptions beam = {};
  std::int64_t most_rows =
      256;                 // hypotheses that the network sees at a time, but for one sentence's
  bool recompute = false;  // all positions at every step (whole_batches), or only the last
};

// Asks the network about the beginnings of translations, position by position. Sentences of like
// lengths share a batch, with a row for each of their hypotheses; as each has its own limit and its
// own end, and a row does not depend on those beside it, a translation is the same whatever else is
// translated. An empty sentence has the empty translation.
//
// The answers are the translations in words, sub-words joined; as text if asked for, which has no
// references. The ratio "bleu" is the BLEU of
// their words against those of the references, in per cent, as a sum with the count 1. The details
// are what it was formed of, and BLEU of both sides as text that people would write:
//   bleu_compound  of its tokens with compounds split, as the papers count English into German
//   bleu_13a       of sacrebleu's tokens, against the raw references where there are some
class Translator final : public task::Decoder {
 public:
  Translator(TranslationTask task, const SearchOptions& options);

  std::int64_t size() const override { return std::ssize(task_.sources); }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override;
  std::map<std::string, task::Ratio> ratios() const override;
  // Finished hypotheses, of which there are at most as many as the beam has; an empty sentence has
  // one. Different sub-words may be the same words.
  std::vector<std::vector<task::RankedAnswer>> ranked(std::int64_t most) const override;
  std::vector<std::pair<std::string, std::string>> details() const override;

 private:
  std::vector<std::string> raw_references() const;
  void begin_group();
  void end_group();
  std::vector<task::RankedAnswer> ranked_of(const BeamSearch& search) const;

  TranslationTask task_;
  SearchOptions options_;
  std::unique_ptr<SearchBatches> batches_;
  std::vector<std::vector<std::int32_t>> sources_;  // in numbers
  std::vector<std::size_t> order_;                  // of those that are not empty
  std::size_t begun_ = 0;                           // of the order
  SearchGroup group_;
  bool asks_ = false;  // whether the batch at hand asks for symbols
  std::vector<std::vector<task::RankedAnswer>> found_;  // of every sentence, the best first
};

}  // namespace keel::models
