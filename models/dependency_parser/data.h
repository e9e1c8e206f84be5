// The treebanks of the parser: files, the generator, or a user.
#pragma once

#include <span>
#include <string>

#include "frontend/task/task.h"
#include "models/dependency_parser/conll.h"

namespace keel::models {

// The sentences of a split. `source` is
//   "builtin"   cfg-dep (builtin.h) of the request's seed
//   a folder    the one file of the split in it, or else in its folder `treebank`: train, dev or
//               test, or a name that ends in one of them after a -, _ or ., such as
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

// The sentences that a user gives: CoNLL rows if there is a tab in any line, otherwise a sentence a
// line, word_TAG word_TAG, of which those without a word are passed over.
// Throws Error{kBadInput} with the number of the line for what is neither.
Treebank treebank_of_lines(std::span<const std::string> lines);

}  // namespace keel::models
