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

// MR, CR, SUBJ and MPQA from pairs of files, a sentence a line, UTF-8 or Windows-1252, plain or
// packed as .gz or .xz, in the folder or in its folder `sentences`: rt-polarity.{neg,pos},
// custrev.{neg,pos}, subj.{objective,subjective}, mpqa.{neg,pos}; those of the four that are there.
// Sentences are brought into Moses' tokens, as the text is that networks are trained on.
// Throws Error{kBadInput} with file and line for what is in them.
std::vector<LabelledLines> read_labelled_lines(const std::filesystem::path& folder);

// Whether there is SICK: SICK_train.txt, SICK_trial.txt and SICK_test_annotated.txt in the folder,
// its `sick`, or its `sentences/sick`; rows of pair_ID, sentence_A, sentence_B, relatedness_score
// and entailment_judgment with tabs between after a line of headings. Sentences are brought into
// Moses' tokens. Throws Error{kBadInput} with file and line for a row of another form and a score
// that is not 1 to 5.
bool has_sick(const std::filesystem::path& folder);
Sick read_sick(const std::filesystem::path& folder);

// What the study transfer measures by the files of a folder: "MR, accuracy %", "SICK, Pearson", ...
std::vector<std::string> transfer_quantities(const std::filesystem::path& folder);

}  // namespace keel::study
