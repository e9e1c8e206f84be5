// The treebanks of the parser: files, the generator, or a user.
#pragma once

#include <span>
#include <string>

#include "frontend/task/task.h"
#include "models/dependency_parser/conll.h"

namespace keel::models {

// The sentences of a split. `source` is
//   "builtin"   cfg-dep (builtin.h) of the request's seed
//   a folder    the one file of the split in it, or else in its folder `treebank`. Its name is
//               train, dev or test, or ends in one of them after a -, _ or ., such as
//               en_ewt-ud-train; then .conllu, .conllx, .conll, .dp or .mrg; then perhaps .gz or
//               .xz. No other file is opened. Or the sections of the Penn Treebank (penn.h)
//   a file      without a published split, such as wsj_sample.dp.xz. Its sentences, in their
//               order, are divided: the last tenth (rounded down) is for testing, the tenth before
//               it for validation, and all before that for training. Where only one split is
//               evaluated (DataRequest::only), it is all of the file
// The name .conllu promises one tree with one root in each sentence; the other facts of the format
// follow from the rows. Throws as read_conll and text::read_text, Error{kIo} that says which files
// were looked for and where, and Error{kBadInput} for several files of a split, and for a single
// file of fewer than 10 sentences.
Treebank load_treebank(const task::DataRequest& request, task::Split split);

// The sentences that a user gives: CoNLL rows if any line has a tab, otherwise one sentence in each
// line, word_TAG word_TAG; lines without a word are skipped. Throws Error{kBadInput} with the
// number of the line for any other line.
Treebank treebank_of_lines(std::span<const std::string> lines);

}  // namespace keel::models
