// The pairs of sentences of a translation, from files or from the generator; sub-words, batches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "frontend/text/clean.h"
#include "models/translation/files.h"
#include "models/translation/pair_rows.h"
#include "models/translation/subwords.h"

namespace keel::models {

struct TranslationOptions {
  std::string source = "builtin";  // lex200, or a folder with a data set of files.h
  CorpusOptions corpus = {};       // of a folder
  text::CleanOptions clean = {};   // of a folder's training pairs, in words
  std::optional<text::CleanOptions> clean_subwords = {};  // and of those that stay, in sub-words
  SubwordOptions subwords = {};
  bool joint = true;  // both languages share merges and dictionary
  // The most symbols of a dictionary, that of the source being both languages' if they share it;
  // 0: all.
  std::int64_t source_symbols = 0, target_symbols = 0;
  std::int64_t train_rows = 0;  // train on the first ones of the pairs that stay; 0: all
};

struct TranslationSubwords {
  std::shared_ptr<const Subwords> source, target;  // one object if they share it

  // Texts by name, as checkpoints keep them: source.merges (empty: none), source.dictionary, and
  // target.* unless they are shared.
  using Texts = std::map<std::string, std::string>;
  Texts texts() const;
  // Throws Error{kBadInput} that names the text that is missing or damaged.
  static TranslationSubwords parse(const Texts& texts);
};

struct TranslationData {
  ParallelCorpus corpus;
  TranslationSubwords subwords;

  // Reads the data for training; the test split only has to exist. Sub-words are learned from the
  // training pairs unless they are given. Throws Error{kUsage} for options, Error{kBadInput} if no
  // training pair stays, and otherwise as files.h and subwords.h say.
  static TranslationData load(const TranslationOptions& options, TranslationSubwords subwords = {});
};

// The numbers of sentences. Throws Error{kBadInput} that begins with `where` and names the
// sentence, as Subwords::encode does.
NumberedPairs numbered_pairs(const SentencePairs& sentences, const TranslationSubwords& subwords,
                             const std::string& where);

}  // namespace keel::models
