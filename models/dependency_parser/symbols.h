// The words, tags and labels of a treebank, and their numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/text/vocabulary.h"
#include "models/dependency_parser/conll.h"
#include "models/dependency_parser/features.h"

namespace keel::models {

// The labels of a treebank, the most frequent first, and whether they stand on arcs from the root,
// between tokens, or both. Numbers begin at 1.
class Labels {
 public:
  explicit Labels(const Treebank& treebank);
  // Reads what text() gives. Throws Error{kBadInput} with the line for anything else.
  static Labels parse(std::string_view text);
  // A line for each label: its name, its count on arcs from the root, and its count on others.
  std::string text() const;

  std::int64_t size() const { return std::ssize(names_); }
  // 0 for a label that has no number.
  std::int32_t number(std::string_view label) const;
  const std::string& name(std::int32_t number) const;
  // Where each may stand: as it does in the treebank. Where no label was seen, all may stand.
  const LabelPlaces& places() const { return places_; }

 private:
  Labels() = default;
  void add(std::string name, std::int64_t from_root, std::int64_t between_tokens);
  void finish();

  struct Counts {
    std::int64_t from_root = 0, between_tokens = 0;
  };
  std::vector<std::string> names_;
  std::vector<Counts> counts_;
  std::unordered_map<std::string, std::int32_t, text::TextHash, std::equal_to<>> numbers_;
  LabelPlaces places_;
};

// The symbols of a training treebank as rows of one table of features: the words, then the tags,
// then the labels. Words and tags also have -NULL- (there is no node), -UNKNOWN- and -ROOT-; labels
// also have -NULL- (there is no arc).
class Symbols {
 public:
  // Words that occur less often than min_count are unknown.
  Symbols(const Treebank& treebank, std::int64_t min_count);
  // Reads what texts() gives. Throws Error{kBadInput} naming the one that is missing or wrong.
  explicit Symbols(const std::map<std::string, std::string>& texts);
  std::map<std::string, std::string> texts() const;

  // Rows of the table.
  std::int64_t rows() const { return first_label() + 1 + labels_.size(); }
  std::int32_t no_word() const { return text::Vocabulary::kPad; }
  std::int32_t root_word() const { return words_.size(); }
  std::int32_t word(std::string_view form) const;
  std::int32_t no_tag() const { return first_tag(); }
  std::int32_t root_tag() const { return first_tag() + tags_.size(); }
  std::int32_t tag(std::string_view tag) const { return first_tag() + tags_.id(tag); }
  // The row of "no arc"; label l has the row first_label() + l.
  std::int32_t first_label() const { return root_tag() + 1; }

  // Which features are words, tags and labels.
  FeatureParts parts() const;

  const text::Vocabulary& words() const { return words_; }
  const text::Vocabulary& tags() const { return tags_; }
  const Labels& labels() const { return labels_; }
  const TransitionClasses& classes() const { return classes_; }

 private:
  Symbols(text::Vocabulary words, text::Vocabulary tags, Labels labels);
  std::int32_t first_tag() const { return root_word() + 1; }

  text::Vocabulary words_, tags_;
  Labels labels_;
  TransitionClasses classes_;
};

}  // namespace keel::models
