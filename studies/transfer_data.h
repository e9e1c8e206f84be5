// The sentences of the transfer tasks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace keel::study {

struct LabelledLines {
  std::string name;  // "MR"
  std::vector<std::string> lines;
  std::vector<std::int32_t> labels;  // 0 or 1
};

struct RatedLines {
  std::vector<std::string> first, second;
  std::vector<double> scores;
};
struct Sick {
  RatedLines train, valid, test;
};

// Reads MR, CR, SUBJ and MPQA from pairs of files, a sentence a line, UTF-8 or Windows-1252, plain
// or packed as .gz or .xz, in the folder or in its folder `sentences`: rt-polarity.{neg,pos},
// custrev.{neg,pos}, subj.{objective,subjective}, mpqa.{neg,pos}; those of the four that exist.
// Sentences become Moses' tokens, like the text that networks train on. Throws Error{kBadInput}
// with file and line for invalid contents.
std::vector<LabelledLines> read_labelled_lines(const std::filesystem::path& folder);

// Whether SICK exists: SICK_train.txt, SICK_trial.txt and SICK_test_annotated.txt in the folder,
// its `sick`, or its `sentences/sick`; rows of pair_ID, sentence_A, sentence_B, relatedness_score
// and entailment_judgment separated by tabs, after a line of headings. Sentences become Moses'
// tokens. Throws Error{kBadInput} with file and line for a row of another form and a score that is
// not 1 to 5.
bool has_sick(const std::filesystem::path& folder);
Sick read_sick(const std::filesystem::path& folder);

// The quantities of the study transfer for a folder: "MR, accuracy %", "SICK, Pearson", ...
std::vector<std::string> transfer_quantities(const std::filesystem::path& folder);

}  // namespace keel::study
