#include "models/dependency_parser/numbered.h"

#include <utility>

namespace keel::models {
namespace {

NumberedSentence numbered(const Sentence& sentence, const Symbols& symbols) {
  NumberedSentence result;
  auto& [words, tags] = result.rows;
  words.push_back(symbols.root_word());
  for (const std::string_view form : sentence.forms) words.push_back(symbols.word(form));
  words.push_back(symbols.no_word());
  tags.push_back(symbols.root_tag());
  for (const std::string_view tag : sentence.tags) tags.push_back(symbols.tag(tag));
  tags.push_back(symbols.no_tag());
  if (sentence.heads.empty()) return result;
  result.heads.push_back(0);
  result.heads.insert(result.heads.end(), sentence.heads.begin(), sentence.heads.end());
  result.heads.push_back(0);
  result.labels.push_back(0);
  for (const std::string_view label : sentence.labels) {
    result.labels.push_back(symbols.labels().number(label));
  }
  result.labels.push_back(0);
  return result;
}

}  // namespace

NumberedTreebank::NumberedTreebank(Treebank bank, std::shared_ptr<const Symbols> known)
    : treebank(std::move(bank)), symbols(std::move(known)) {
  for (const Sentence& s : treebank.sentences) sentences.push_back(numbered(s, *symbols));
}

}  // namespace keel::models
