// The treebanks of the parser: files or the generator, numbered, as streams.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "frontend/task/model.h"
#include "models/dependency_parser/numbered.h"

namespace keel::models {

// The sentences of a split. `source` is
//   "builtin"   cfg-dep (builtin.h) of the request's seed
//   a folder    the one file of the split in it, or else in its folder `treebank`: train, dev or
//               test, or a name that ends in one of them behind a -, _ or ., such as
//               en_ewt-ud-train; then .conllu, .conllx, .conll or .dp; then perhaps .gz or .xz. No
//               other file is opened.
//   a file      that has no published split, such as wsj_sample.dp.xz: of its sentences, in their
//               order, a tenth (rounded down) before the last tenth is for validation, that last
//               one for testing and all before for training
// What a name says of the format is that .conllu has one tree with one root in each sentence; the
// rest is read off the rows. Throws as read_conll and text::read_text, Error{kIo} that says what
// was looked for and where, and Error{kBadInput} for several files of a split, and for a single
// file of fewer than 10 sentences.
Treebank load_treebank(const task::DataRequest& request, task::Split split);

// Keeps the first `rows` sentences; 0: all of them. Returns how many tokens are gone.
std::int64_t keep_first(Treebank& treebank, std::int64_t rows);

// The sentences that a user gives: CoNLL rows if there is a tab in any line, otherwise a sentence a
// line, word_TAG word_TAG, of which those without a word are passed over.
// Throws Error{kBadInput} with the number of the line for what is neither.
Treebank treebank_of_lines(std::span<const std::string> lines);

// Each treebank is read when its first stream is made.
class TreebankSplits : public task::Splits {
 public:
  TreebankSplits(task::DataRequest request, std::shared_ptr<const Symbols> symbols);
  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options) const override;

 private:
  task::DataRequest request_;
  std::shared_ptr<const Symbols> symbols_;
  mutable std::map<task::Split, std::shared_ptr<const NumberedTreebank>> treebanks_;
};

}  // namespace keel::models
