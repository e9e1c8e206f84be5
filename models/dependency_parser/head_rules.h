// The heads of constituents, by which trees of phrases become trees of words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace keel::models {

// A word or a phrase of the Penn Treebank, as a part of a larger phrase.
struct Constituent {
  std::string_view category;   // "NP"; of a word its tag
  std::string_view functions;  // "-SBJ-1", or ""
  bool is_word = false;
  std::int32_t head = 0;  // the number of its head word in the sentence, from 1
};

// "NP" of "NP-SBJ-1" and "PRT" of "PRT|ADVP"; "-NONE-" and "-LRB-" are whole.
std::string_view category_of(std::string_view label);
// The rest of a label: "-SBJ-1".
std::string_view functions_of(std::string_view label);

// Whether a tag is one of punctuation: `` '' , . :
bool is_punctuation_tag(std::string_view tag);

// The place of the head among the parts of a phrase, of which there is at least one, by the rules
// of Yamada and Matsumoto 2003: a phrase has a list of categories, and the first category that a
// part has gives the head, the leftmost or the rightmost such part as the phrase's rule says. In a
// phrase whose list has none of them, and in one without a list, it is the outermost part on that
// side that is no punctuation.
std::size_t head_place(std::string_view phrase, std::span<const Constituent> parts);

// The label of the arc from the head of a phrase to the head of another part. With ROOT, for the
// head of a sentence, there are twelve, as in Penn2Malt: SUB, OBJ and PRD by function and place, VC
// in a chain of verbs, SBAR, PMOD, NMOD, AMOD and VMOD by the phrase, P for punctuation, DEP
// elsewhere.
std::string_view arc_label(std::string_view phrase, std::span<const Constituent> parts,
                           std::size_t head, std::size_t dependent);

}  // namespace keel::models
