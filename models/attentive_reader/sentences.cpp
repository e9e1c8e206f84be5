#include "models/attentive_reader/sentences.h"

#include <algorithm>
#include <set>
#include <span>

namespace keel::models {
namespace {

struct Sentence {
  std::size_t first = 0, end = 0;
  std::int64_t shared = 0;
};

std::vector<Sentence> sentences_of(std::span<const std::string_view> passage,
                                   const std::set<std::string_view>& asked) {
  std::vector<Sentence> sentences;
  bool is_open = false;
  for (std::size_t i = 0; i < passage.size(); ++i) {
    if (!is_open) sentences.push_back({i, i, 0});
    is_open = !ends_sentence(passage[i]);
    sentences.back().end = i + 1;
    // A full stop stands in every sentence.
    if (is_open) sentences.back().shared += std::int64_t(asked.contains(passage[i]));
  }
  return sentences;
}

}  // namespace

bool ends_sentence(std::string_view token) { return token == "." || token == "?" || token == "!"; }

TokenText best_sentences(const TokenText& passage, const std::vector<std::string>& question,
                         std::int64_t count) {
  if (count == 0) return passage;
  const std::vector<std::string_view> tokens = passage.views();
  std::vector<Sentence> best = sentences_of(tokens, {question.begin(), question.end()});
  std::ranges::stable_sort(best, std::greater(), &Sentence::shared);
  if (std::ssize(best) > count) best.resize(std::size_t(count));
  std::ranges::sort(best, {}, &Sentence::first);
  TokenText kept;
  for (const Sentence& sentence : best) {
    kept.add_all(std::span(tokens).subspan(sentence.first, sentence.end - sentence.first));
  }
  return kept;
}

}  // namespace keel::models
