// The Penn Treebank as its authors give it out: phrases in brackets, in sections of many files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/task/task.h"
#include "models/dependency_parser/conll.h"

namespace keel::models {

// The rows of CoNLL, in ten columns, of trees such as
//     ( (S (NP-SBJ (NNP Vinken)) (VP (VBZ is) (NP-PRD (NN chairman))) (. .)) )
// whose outermost bracket may have a label or none. Heads and labels follow from head_rules.h.
// Words with the tag -NONE-, which stand for what is not said, are dropped, and so is a phrase of
// such words only; words and tags stay as they are written. Throws Error{kBadInput}, "[penn] FILE:
// line N: expected X, got Y", for a bracket that holds nothing, a word and another thing, or no
// label; for brackets that are not closed or never opened; for words outside of brackets; for a
// tree of more than text::kMaxTreeDepth levels or kMostTokens words, or without a word; and for a
// text without a tree.
std::string rows_of_penn_trees(std::string_view text, const std::string& file);

// The folder that holds the sections 00 to 24, each a folder of files such as wsj_0001.mrg: the
// given one, or in it wsj, treebank, treebank/wsj, parsed/mrg/wsj or combined/wsj. Nothing if there
// is none of the sections 02, 22 and 23.
std::optional<std::filesystem::path> find_penn_sections(const std::filesystem::path& folder);

// The sentences of sections 02 to 21 for training, 22 for validation or 23 for testing, in the
// order of the files' names. Throws Error{kIo} for a section without files, and as
// rows_of_penn_trees and text::read_text.
Treebank read_penn_sections(const std::filesystem::path& folder, task::Split split);

}  // namespace keel::models
