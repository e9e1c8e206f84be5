// The sentences of skip-thoughts, from files or from the generator, and their rows.
#pragma once

#include <memory>
#include <string>

#include "frontend/task/task.h"
#include "models/skip_thoughts/triples.h"

namespace keel::models {

// The text for training. `lower_case` applies to files. Throws as files.h says.
OrderedText read_thoughts(const task::DataRequest& request, bool lower_case);

// The dictionary of the training sentences: at most `symbols`, its own four included.
text::Dictionary thought_dictionary(const OrderedText& text, std::int64_t symbols);

// Leaves out, and names, sentences of more than `most_words` words, and their neighbours. Throws
// Error{kBadInput} that begins with `where` if no row is left.
std::shared_ptr<const TripleRows> triple_rows(const std::vector<Passage>& passages,
                                              const text::Dictionary& dictionary,
                                              std::int64_t most_words, data::SplitNotes notes);

}  // namespace keel::models
