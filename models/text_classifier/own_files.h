// Data of a user's own for the text classifier.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "models/text_classifier/corpus.h"

namespace keel::models {

struct OwnFilesOptions {
  std::uint64_t seed = 0;  // by which rows are held out
  bool lower_case = true;  // of texts; labels stay as they are
  // The classes that there are; empty: the labels of the training file, numbers by their size and
  // all others after them by their bytes.
  std::vector<std::string> labels = {};
};

// Reads train, valid (or val, or dev) and test from a folder; each is one file of labelled_text.h,
// such as train.csv or dev.tsv.gz. `folder` may also be one such file, which then is train. Where
// there is no file for validation, or none for testing, a tenth of the training rows, drawn by the
// seed, is held out for it; Corpus::files says so. Words are what stands between blanks.
// The test file is read when the test sentences are asked for.
// Throws Error{kIo} for a training file that is not there, and says what is there instead;
// Error{kBadInput} for two files of one split, fewer than 10 rows to hold some out of, a label
// that is none of the known ones (with file, line and those), and as read_labelled.
Corpus read_own_files(const std::filesystem::path& folder, const OwnFilesOptions& options);

// "ABBR, DESC, ENTY and 3 more": what labels there are, of many only the first, for messages.
inline constexpr std::size_t kMostLabelsShown = 20;
std::string shown_labels(std::span<const std::string> labels);

}  // namespace keel::models
