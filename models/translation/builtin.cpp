#include "models/translation/builtin.h"

#include <algorithm>
#include <string_view>

#include "frontend/data/draw.h"
#include "src/core/rng.h"

namespace keel::models {
namespace {

constexpr std::uint64_t kLexKey = 20191116;  // of all numbers drawn here
constexpr int kLexWords = 200, kTopics = 10;
constexpr int kLexShortest = 4, kLexLongest = 14;

// Sums of the weights of the words first, first + step, ...
class LexWeights {
 public:
  LexWeights(int first, int step) : first_(first), step_(step) {
    double sum = 0;
    for (int rank = first; rank < kLexWords; rank += step) sums_.push_back(sum += 1.0 / (rank + 2));
  }
  int rank(data::Draw& draw) const {
    const auto above = std::ranges::upper_bound(sums_, draw.uniform() * sums_.back());
    return first_ + step_ * static_cast<int>(above - sums_.begin());
  }

 private:
  int first_, step_;
  std::vector<double> sums_;
};

struct LexDistributions {
  LexWeights all{0, 1};
  std::vector<LexWeights> topics;
  LexDistributions() {
    for (int topic = 0; topic < kTopics; ++topic) topics.emplace_back(topic, kTopics);
  }
};

std::vector<int> draw_sentence(const LexDistributions& words, data::Draw draw) {
  const auto topic = static_cast<std::size_t>(draw.below(kTopics));
  const int length = kLexShortest + draw.below(kLexLongest - kLexShortest + 1);
  std::vector<int> ranks;
  for (int i = 0; i < length; ++i) {
    const LexWeights& from = draw.chance(0.5) ? words.all : words.topics[topic];
    ranks.push_back(from.rank(draw));
  }
  return ranks;
}

SentencePairs make_lex_part(std::string_view part, std::uint32_t count) {
  const std::uint32_t stream = stream_of(fmt::format("lex200.{}", part));
  const LexDistributions words;
  SentencePairs pairs;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::vector<int> ranks = draw_sentence(words, data::Draw(kLexKey, stream, i));
    std::vector<std::string> source;
    for (int rank : ranks) source.push_back(fmt::format("s{}", rank));
    pairs.source.push_back(fmt::format("{}", fmt::join(source, " ")));
    pairs.target.push_back(fmt::format("{}", fmt::join(lex200_translation(ranks), " ")));
  }
  return pairs;
}

}  // namespace

std::vector<std::string> lex200_translation(const std::vector<int>& ranks) {
  std::vector<std::string> words;
  const auto translate = [&](int rank) {
    words.push_back(fmt::format("t{}", (7 * rank + 3) % kLexWords));
    if (rank % 5 == 0) words.push_back(fmt::format("g{}", ranks.front() % 3));
  };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const bool swaps = ranks[i] % 4 == 0 && i + 1 < ranks.size();
    if (swaps) translate(ranks[i + 1]);
    translate(ranks[i]);
    i += swaps;
  }
  return words;
}

ParallelCorpus make_lex200() {
  ParallelCorpus corpus;
  corpus.name = "lex200";
  corpus.origin = "built-in sentences";
  corpus.train = make_lex_part("train", 20000);
  corpus.valid = make_lex_part("valid", 500);
  corpus.test = [] { return make_lex_part("test", 500); };
  return corpus;
}

}  // namespace keel::models
