// Treebanks as text: CoNLL-X, CoNLL-U, and rows of form, tag and head.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keel::models {

inline constexpr std::int64_t kMostTokens = 65000;  // of a sentence

// A sentence of at least one token; its views look into the text of its treebank. Token i is the
// element i - 1 of each list.
struct Sentence {
  std::vector<std::string_view> forms, tags;
  std::vector<std::string_view> coarse_tags;  // empty in three columns
  std::vector<std::int32_t> heads;            // 0: the root; empty if heads are not read
  std::vector<std::string_view> labels;       // of the arcs from the heads; empty if heads are
  // Its lines, with the comments and empty lines before it and the empty line after it. The blocks
  // of a treebank, one after the other, are its text.
  std::string_view block;
  std::int64_t line = 0;  // the number of its first row in the file

  std::int32_t size() const { return static_cast<std::int32_t>(forms.size()); }
};

struct Treebank {
  std::string name;  // for messages: "en_ewt-ud-train.conllu.xz"
  std::shared_ptr<const std::string> text;
  std::vector<Sentence> sentences;
};

struct ConllOptions {
  bool has_heads = true;   // whether heads and labels are read; otherwise they may be anything
  bool is_conllu = false;  // whether heads have to make a tree with one root, as CoNLL-U promises
};

// Reads a text of rows whose columns are separated by tabs, with an empty line after each sentence.
// The last sentence may lack that line.
//   ten columns    id, form, lemma, coarse tag, tag, features, head, label, and two that are
//                  ignored. Lines that begin with # are comments.
//                  Rows with the id of a range (3-4) or of an empty node (5.1) are skipped.
//   three columns  form, tag, head. The label of an arc
//                  from the root is "root", that of other arcs "dep".
// The tag is column 5, or column 4 where that is "_". Ids count from 1.
// Throws Error{kBadInput}, "[conll] FILE: line N: expected X, got Y", for everything else: another
// number of columns, ids out of order, a head that is no token of the sentence, an empty form, tag
// or label, a sentence of more than kMostTokens tokens, and a text without a sentence; for CoNLL-U
// also for several roots or a cycle.
Treebank read_conll(std::string text, std::string name, const ConllOptions& options);

// The sentence's block with other heads and labels, without its last end of line. heads[i] and
// labels[i] are those of token i + 1. Three columns have no labels. What else the treebank says of
// arcs is left out: DEPS of CoNLL-U and its empty nodes, PHEAD and PDEPREL of CoNLL-X. All other
// lines and columns are unchanged.
std::string with_arcs(const Sentence& sentence, std::span<const std::int32_t> heads,
                      std::span<const std::string_view> labels);

}  // namespace keel::models
