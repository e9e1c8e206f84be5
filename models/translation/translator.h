// Translations of sentences by beam search, with the network that is being trained.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/task/decoder.h"
#include "models/translation/beam_search.h"
#include "models/translation/data.h"
#include "models/translation/search_group.h"

namespace keel::models {

// Sentences to translate together, and the references of their translations.
struct TranslationTask {
  TranslationSubwords subwords;
  std::vector<std::string> sources;
  std::vector<std::string> references = {};  // as many as sources, or none: then there is no BLEU
  // The references as people wrote them, when they are asked for; empty: they are put together from
  // their tokens.
  std::function<std::vector<std::string>()> raw_references = {};
  std::string origin = "";      // the file of the sources, for errors
  std::int64_t first = 1;       // the number of the first source there
  std::string language = "en";  // of the translations
  bool lower_case = false;      // whether translations are, whatever the raw references are
  bool as_text = false;         // answers are text as people write it; otherwise tokens
};

struct SearchOptions {
  BeamOptions beam = {};
  std::int64_t most_rows = 256;  // hypotheses of a batch, except for those of one sentence
  bool recompute = false;  // all positions at every step (whole_batches), or only the last one
};

// Asks the network about prefixes of translations, position by position. Sentences of similar
// lengths share a batch, with a row for each of their hypotheses. Each sentence has its own limit
// and its own end, and no row depends on others, so a translation is the same whatever else is
// translated. An empty sentence has the empty translation.
//
// The answers are the translations in words with sub-words joined, or as text if asked for, which
// has no references. The ratio "bleu" is the BLEU of their words against those of the references,
// in per cent, as a sum with the count 1. The details are the numbers it was formed of, and BLEU of
// both sides as people would write them:
//   bleu_compound  of its tokens with compounds split, as in the papers on English into German
//   bleu_13a       of sacrebleu's tokens, against the raw references if there are any
class Translator final : public task::Decoder {
 public:
  Translator(TranslationTask task, const SearchOptions& options);

  std::int64_t size() const override { return std::ssize(task_.sources); }
  const task::Batch* next() override;
  void take(const std::map<std::string, Tensor>& predictions) override;
  std::vector<std::string> answers() const override;
  std::map<std::string, task::Ratio> ratios() const override;
  // Finished hypotheses, at most as many as the beam has; an empty sentence has one. Different
  // sub-words may be the same words.
  std::vector<std::vector<task::RankedAnswer>> ranked(std::int64_t most) const override;
  std::vector<std::pair<std::string, std::string>> details() const override;
  // Every group of sentences that share batches belongs to one part.
  bool take_part(std::int64_t part, std::int64_t parts) override;
  std::vector<task::FoundAnswers> found() const override;
  void take_found(const task::FoundAnswers& answers) override;

 private:
  std::vector<std::string> raw_references() const;
  std::int64_t bucket(std::size_t sentence) const;
  std::int64_t most_of_group(std::int64_t bucket) const;
  // The end of the group of sentences that begins at this place of the order.
  std::size_t end_of_group(std::size_t begin) const;
  // Goes on to the next group of this part.
  void skip_other_parts();
  void begin_group();
  void end_group();
  std::vector<task::RankedAnswer> ranked_of(const BeamSearch& search) const;

  TranslationTask task_;
  SearchOptions options_;
  std::unique_ptr<SearchBatches> batches_;
  std::vector<std::vector<std::int32_t>> sources_;  // in numbers
  std::vector<std::size_t> order_;                  // of those that are not empty
  std::size_t begun_ = 0;                           // of the order
  std::int64_t part_ = 0, parts_ = 1;               // of the groups: every parts_-th is this one's
  std::int64_t groups_ = 0;                         // that were begun or skipped
  std::vector<std::size_t> searched_;               // sentences of this part
  SearchGroup group_;
  bool asks_ = false;  // whether the current batch asks for symbols
  std::vector<std::vector<task::RankedAnswer>> found_;  // of every sentence, the best first
};

}  // namespace keel::models
