// A user's own data for the text classifier.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/task/batch.h"
#include "models/text_classifier/corpus.h"

namespace keel::models {

struct OwnFilesOptions {
  std::uint64_t seed = 0;  // for choosing the rows that are held out
  bool lower_case = true;  // of texts; labels stay as they are
  // The classes; empty: the labels of the training file, first numbers by their size and then all
  // others by their bytes.
  std::vector<std::string> labels = {};
  std::optional<task::Split> only = std::nullopt;  // as task::DataRequest::only
};

// Reads train, valid (or val, or dev) and test from a folder; each is one file of labelled_text.h,
// such as train.csv or dev.tsv.gz. `folder` may also be one such file, which then is train. If
// there is no file for validation, or none for testing, a tenth of the training rows, drawn by the
// seed, is held out for it; Corpus::files says so. Words are separated by blanks. The test file is
// read when its sentences are first needed. Of `only` one split its file is enough, and a file in
// place of a folder is that split, whole.
// Throws Error{kIo} for a missing training file, and says which files are there instead;
// Error{kBadInput} for two files of one split, fewer than 10 rows to hold some out of, an unknown
// label (with file, line and the known ones), and as read_labelled.
Corpus read_own_files(const std::filesystem::path& folder, const OwnFilesOptions& options);
// Whether `source` has a file of its own for the split, or is one.
bool has_own_file(const std::filesystem::path& source, task::Split split);

// Labels for messages, of many only the first: "ABBR, DESC, ENTY and 3 more".
inline constexpr std::size_t kMostLabelsShown = 20;
std::string shown_labels(std::span<const std::string> labels);

}  // namespace keel::models
