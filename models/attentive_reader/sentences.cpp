#include "models/attentive_reader/sentences.h"

#include <algorithm>
#include <set>

namespace keel::models {
namespace {

struct Sentence {
  std::size_t first = 0, end = 0;
  std::int64_t shared = 0;
};

std::vector<Sentence> sentences_of(const std::vector<std::string>& passage,
                                   const std::set<std::string>& asked) {
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

bool ends_sentence(const std::string& token) {
  return token == "." || token == "?" || token == "!";
}

std::vector<std::string> best_sentences(const std::vector<std::string>& passage,
                                        const std::vector<std::string>& question,
                                        std::int64_t count) {
  if (count == 0) return passage;
  std::vector<Sentence> best =
      sentences_of(passage, std::set<std::string>(question.begin(), question.end()));
  std::ranges::stable_sort(best, std::greater(), &Sentence::shared);
  if (std::ssize(best) > count) best.resize(std::size_t(count));
  std::ranges::sort(best, {}, &Sentence::first);
  std::vector<std::string> kept;
  for (const Sentence& sentence : best) {
    kept.insert(kept.end(), passage.begin() + std::ptrdiff_t(sentence.first),
                passage.begin() + std::ptrdiff_t(sentence.end));
  }
  return kept;
}

}  // namespace keel::models
