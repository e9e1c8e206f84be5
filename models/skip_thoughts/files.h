// Ordered sentences from files.
#pragma once

#include <filesystem>

#include "models/skip_thoughts/corpus.h"

namespace keel::models {

// Looked for in the folder, in this order:
//   train.txt, valid.txt, test.txt   plain, .gz or .xz: a sentence a line, its words with spaces
//                                    between, in their order; an empty line ends a passage
//   *.tar.xz, *.tar.gz or *.tar      there or in its folder lm, one archive of books as they were
//                                    printed, which must hold files *.txt and nothing else: prose
//                                    in paragraphs, a line each or with empty lines between. It is
//                                    cut into sentences (text/sentences.h) and tokens (Moses,
//                                    English, not escaped). Of each book the first 96 % of the
//                                    sentences are for training, the next 2 % for validation and
//                                    the last for testing.
// With lower_case all is brought into lower case. Throws Error{kIo} that says what was looked for,
// Error{kBadInput} with the file and line for what is in them: invalid UTF-8, an archive that is
// damaged or has no text, a part without three sentences in a row.
OrderedText read_ordered_text(const std::filesystem::path& folder, bool lower_case);

}  // namespace keel::models
