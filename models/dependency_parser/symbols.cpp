#include "models/dependency_parser/symbols.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <utility>

#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

// CoNLL-U allows spaces within a form, vocabularies do not.
std::string word_of_form(std::string_view form) {
  std::string word(form);
  std::ranges::replace(word, ' ', '_');
  return word;
}

template <class TextOf>
text::Vocabulary count_texts(const Treebank& treebank, std::int64_t min_count,
                             const TextOf& texts_of) {
  text::WordCounts counts;
  for (const Sentence& sentence : treebank.sentences) {
    for (const std::string_view text : texts_of(sentence)) ++counts[word_of_form(text)];
  }
  return text::Vocabulary(counts, {.min_count = min_count});
}

std::int64_t label_count(std::string_view text) {
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? count : -1;
}

const std::string& asset_of(const std::map<std::string, std::string>& texts, const char* name) {
  const auto found = texts.find(name);
  check(found != texts.end(), ErrorKind::kBadInput, "expected the {} of a parser, got none", name);
  return found->second;
}

}  // namespace

Labels::Labels(const Treebank& treebank) {
  std::map<std::string_view, Counts> counts;
  for (const Sentence& sentence : treebank.sentences) {
    for (std::size_t i = 0; i < sentence.labels.size(); ++i) {
      Counts& c = counts[sentence.labels[i]];
      ++(sentence.heads[i] == 0 ? c.from_root : c.between_tokens);
    }
  }
  std::vector<std::pair<std::string_view, Counts>> order(counts.begin(), counts.end());
  // Equal counts stay in the order of their bytes.
  std::ranges::stable_sort(order, std::greater{}, [](const auto& label) {
    return label.second.from_root + label.second.between_tokens;
  });
  for (const auto& [name, c] : order) add(std::string(name), c.from_root, c.between_tokens);
  finish();
}

void Labels::add(std::string name, std::int64_t from_root, std::int64_t between_tokens) {
  numbers_.emplace(name, static_cast<std::int32_t>(size() + 1));
  names_.push_back(std::move(name));
  counts_.push_back({from_root, between_tokens});
}

void Labels::finish() {
  const bool any_root = std::ranges::any_of(counts_, &Counts::from_root);
  const bool any_other = std::ranges::any_of(counts_, &Counts::between_tokens);
  for (const Counts& c : counts_) {
    places_.from_root.push_back(c.from_root > 0 || !any_root);
    places_.between_tokens.push_back(c.between_tokens > 0 || !any_other);
  }
}

Labels Labels::parse(std::string_view content) {
  Labels labels;
  text::Lines lines(content);
  while (const auto line = lines.next()) {
    const std::vector<std::string_view> parts = text::words_of(line->text);
    const bool whole =
        parts.size() == 3 && label_count(parts[1]) >= 0 && label_count(parts[2]) >= 0;
    check(whole && labels.number(parts[0]) == 0, ErrorKind::kBadInput,
          "[labels] {}: expected a new label and two counts, got '{}'",
          text::place("labels", line->number), text::clipped(line->text, 60));
    labels.add(std::string(parts[0]), label_count(parts[1]), label_count(parts[2]));
  }
  check(labels.size() > 0, ErrorKind::kBadInput, "[labels] expected labels, got none");
  labels.finish();
  return labels;
}

std::string Labels::text() const {
  std::string text;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{} {} {}\n", names_[i], counts_[i].from_root,
                   counts_[i].between_tokens);
  }
  return text;
}

std::int32_t Labels::number(std::string_view label) const {
  const auto found = numbers_.find(label);
  return found == numbers_.end() ? 0 : found->second;
}

const std::string& Labels::name(std::int32_t number) const {
  check(number >= 1 && number <= size(), ErrorKind::kUsage, "[labels] expected 1 to {}, got {}",
        size(), number);
  return names_[static_cast<std::size_t>(number - 1)];
}

Symbols::Symbols(text::Vocabulary words, text::Vocabulary tags, Labels labels)
    : words_(std::move(words)),
      tags_(std::move(tags)),
      labels_(std::move(labels)),
      classes_(labels_.places()) {}

Symbols::Symbols(const Treebank& treebank, std::int64_t min_count)
    : Symbols(count_texts(treebank, min_count, [](const Sentence& s) { return s.forms; }),
              count_texts(treebank, 1, [](const Sentence& s) { return s.tags; }),
              Labels(treebank)) {}

Symbols::Symbols(const std::map<std::string, std::string>& texts)
    : Symbols(text::Vocabulary::parse(asset_of(texts, "words"), "words"),
              text::Vocabulary::parse(asset_of(texts, "tags"), "tags"),
              Labels::parse(asset_of(texts, "labels"))) {}

std::map<std::string, std::string> Symbols::texts() const {
  return {{"words", words_.text()}, {"tags", tags_.text()}, {"labels", labels_.text()}};
}

std::int32_t Symbols::word(std::string_view form) const {
  const bool is_plain = form.find(' ') == form.npos;
  return is_plain ? words_.id(form) : words_.id(word_of_form(form));
}

FeatureParts Symbols::parts() const {
  constexpr std::int64_t kNodes = kFeatureNodes;
  const std::int64_t tags = first_tag(), labels = first_label();
  return {
      {{0, kNodes, 0, tags, no_word()},
       {kNodes, kNodes, tags, labels - tags, no_tag()},
       {2 * kNodes, kNodes - std::int64_t{kFirstChild}, labels, rows() - labels, first_label()}}};
}

}  // namespace keel::models
