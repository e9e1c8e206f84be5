// Ordered sentences from files.
#pragma once

#include <filesystem>

#include "frontend/task/batch.h"
#include "models/skip_thoughts/corpus.h"

namespace keel::models {

// Each is looked for in the folder, in this order:
//   train.txt, valid.txt, test.txt   plain, .gz or .xz: a sentence a line, in order, its words
//                                    separated by spaces; an empty line ends a passage
//   *.tar.xz, *.tar.gz or *.tar      there or in its folder lm, one archive of books as printed. It
//                                    must hold files *.txt and nothing else: prose in paragraphs,
//                                    each in one line or separated by empty lines. The prose is
//                                    cut into sentences (text/sentences.h) and tokens (Moses,
//                                    English, not escaped). Of each book the first 96 % of the
//                                    sentences are for training, the next 2 % for validation and
//                                    the last for testing.
// With lower_case everything becomes lower case. Throws Error{kIo} that says what was looked for,
// and Error{kBadInput} with file and line for wrong contents: invalid UTF-8, an archive that is
// damaged or has no text, a part without three sentences in a row.
//
// If `only` asks for one split, its file is enough, and a file in place of a folder, of either
// form, is the whole of that split.
OrderedText read_ordered_text(const std::filesystem::path& folder, bool lower_case,
                              std::optional<task::Split> only = std::nullopt);

}  // namespace keel::models
