// Bracketed trees with a label at every node, in the form of the Stanford Sentiment Treebank
// (Socher et al. 2013):   (3 (2 (2 The) (2 Rock)) (4 rocks))
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel::text {

// The parts of a tree that are kept.
struct LabelledSentence {
  std::int32_t label = 0;          // of the root
  std::vector<std::string> words;  // the leaves from left to right
};

// Deeper trees are refused; those of the treebank stay below 40.
inline constexpr int kMaxTreeDepth = 1000;

// Reads a line that holds one tree: `(label word)` or `(label tree tree...)`, with any blanks
// between the parts. Labels are 0 to labels - 1; those of the inner nodes are checked and dropped.
// The leaves get their brackets back (word_of_leaf). Throws Error{kBadInput}: "[tree] WHERE:
// expected X at byte N, got Y", where bytes count from 1, for a line that holds anything else.
// Reads without recursion.
LabelledSentence read_tree(std::string_view line, std::int32_t labels, std::string_view where);

// The word that a leaf stands for: "-LRB-" is "(" and "-RRB-" is ")", in lower case too; every
// other leaf is itself.
std::string_view word_of_leaf(std::string_view leaf);

}  // namespace keel::text
