// The two real data sets. Each file may be plain or packed as .gz or .xz.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "frontend/task/batch.h"
#include "models/text_classifier/corpus.h"

namespace keel::models {

// Reads RT, "sentence polarity dataset v1.0" (Pang & Lee 2005): rt-polarity.neg (label 0) and
// rt-polarity.pos (label 1), a sentence a line, in the folder or in its folder `sentences`; in
// Windows-1252 as published, or UTF-8. All lines are shuffled with the seed. The first 8,608 are
// for training, the next 964 for validation, the next 1,089 for testing; these numbers are those of
// Xu et al. (2019) and leave out one of the 10,662. Another number of lines is divided in the same
// proportion, rounded down. Both functions throw Error{kIo} that names the files and folders looked
// for, and Error{kBadInput} with file and line for fewer than 12 sentences of RT and for impossible
// bytes or labels.
Corpus read_rt(const std::filesystem::path& folder, std::uint64_t seed, bool lower_case);

// Reads SST5, the Stanford Sentiment Treebank (Socher et al. 2013), with its published splits:
// whole sentences with the label 0 to 4 of the root. It looks first for trees in train.txt, dev.txt
// and test.txt (in the folder, or in its sst-trees, trees or sentences/sst-trees), then for lines
// of label and words in stsa.fine.train, .dev and .test (in the folder or in its sentences).
// If `only` asks for one split, its file is enough, and a file in place of a folder is the whole of
// that split.
Corpus read_sst5(const std::filesystem::path& folder, bool lower_case,
                 std::optional<task::Split> only = std::nullopt);
// Whether the folder has the files of RT.
bool has_rt(const std::filesystem::path& folder);
// Whether the split's file in a folder, or the file, has SST5's form rather than labelled_text.h's.
bool is_sst5(const std::filesystem::path& source, task::Split split);

}  // namespace keel::models
