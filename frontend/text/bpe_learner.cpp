#include "frontend/text/bpe_learner.h"

#include <deque>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/text/lines.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

using Symbols = std::vector<std::int32_t>;
using SymbolPair = std::pair<std::int32_t, std::int32_t>;

struct PairHash {
  std::size_t operator()(const SymbolPair& pair) const {
    const auto key = std::uint64_t{static_cast<std::uint32_t>(pair.first)} << 32 |
                     static_cast<std::uint32_t>(pair.second);
    return std::hash<std::uint64_t>{}(key * 0x9E3779B97F4A7C15u);
  }
};

struct CountedWord {
  Symbols symbols;
  std::int64_t count = 0;
};

struct PairFacts {
  std::int64_t count = 0;
  std::vector<std::size_t> words;  // all that hold it, perhaps twice, and some that did
};

class BpeLearner {
 public:
  explicit BpeLearner(const WordCounts& counts) {
    for (const auto& [word, count] : counts) add_word(word, count);
    for (std::size_t word = 0; word < words_.size(); ++word) count_pairs(word, 1);
    for (const auto& [pair, facts] : pairs_) queue_.push(entry(pair, facts.count));
  }

  // The best pair that occurs min_count times, which becomes a symbol; or nothing.
  std::optional<BpeMerge> merge_best(std::int64_t min_count) {
    while (!queue_.empty()) {
      const Entry best = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(best.pair);
      if (found == pairs_.end()) continue;
      if (found->second.count != best.count) {  // it has become rarer
        if (found->second.count > 0) queue_.push(entry(best.pair, found->second.count));
        continue;
      }
      if (best.count < min_count) return std::nullopt;
      merge(best.pair);
      return BpeMerge{texts_[index(best.pair.first)], texts_[index(best.pair.second)]};
    }
    return std::nullopt;
  }

 private:
  // A pair with a count that it had when it was put into the queue.
  struct Entry {
    std::int64_t count;
    std::string_view left, right;
    SymbolPair pair;
    friend bool operator<(const Entry& a, const Entry& b) {
      return std::tie(a.count, a.left, a.right) < std::tie(b.count, b.left, b.right);
    }
  };

  static std::size_t index(std::int32_t symbol) { return static_cast<std::size_t>(symbol); }

  Entry entry(const SymbolPair& pair, std::int64_t count) const {
    return {count, texts_[index(pair.first)], texts_[index(pair.second)], pair};
  }

  std::int32_t symbol(const std::string& text) {
    const auto [place, is_new] =
        symbols_.try_emplace(text, static_cast<std::int32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return place->second;
  }

  void add_word(std::string_view word, std::int64_t count) {
    CountedWord counted{.symbols = {}, .count = count};
    for (std::size_t at = 0; at < word.size();) {
      std::size_t end = at + 1;
      while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) ++end;
      std::string text(word.substr(at, end - at));
      if (end == word.size()) text += kEndOfWord;
      counted.symbols.push_back(symbol(text));
      at = end;
    }
    words_.push_back(std::move(counted));
  }

  // Adds the pairs of a word to the counts, or takes them away.
  void count_pairs(std::size_t word, std::int64_t sign) {
    const Symbols& symbols = words_[word].symbols;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      PairFacts& facts = pairs_[{symbols[i], symbols[i + 1]}];
      facts.count += sign * words_[word].count;
      if (sign > 0 && (facts.words.empty() || facts.words.back() != word)) {
        facts.words.push_back(word);
      }
    }
  }

  void merge(const SymbolPair& pair) {
    const std::int32_t joined = symbol(texts_[index(pair.first)] + texts_[index(pair.second)]);
    const std::vector<std::size_t> holders = std::move(pairs_[pair].words);
    for (std::size_t word : holders) {
      if (!holds(word, pair)) continue;
      count_pairs(word, -1);
      replace(words_[word].symbols, pair, joined);
      count_pairs(word, 1);
      note_new_pairs(words_[word].symbols, joined);
    }
    pairs_.erase(pair);
    for (const SymbolPair& changed : changed_) queue_.push(entry(changed, pairs_[changed].count));
    changed_.clear();
  }

  bool holds(std::size_t word, const SymbolPair& pair) const {
    const Symbols& symbols = words_[word].symbols;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (symbols[i] == pair.first && symbols[i + 1] == pair.second) return true;
    }
    return false;
  }

  static void replace(Symbols& symbols, const SymbolPair& pair, std::int32_t joined) {
    std::size_t out = 0;
    for (std::size_t i = 0; i < symbols.size(); ++out) {
      const bool here =
          i + 1 < symbols.size() && symbols[i] == pair.first && symbols[i + 1] == pair.second;
      symbols[out] = here ? joined : symbols[i];
      i += here ? 2 : 1;
    }
    symbols.resize(out);
  }

  // Only pairs with the new symbol have become more frequent.
  void note_new_pairs(const Symbols& symbols, std::int32_t joined) {
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (symbols[i] == joined || symbols[i + 1] == joined) {
        changed_.insert({symbols[i], symbols[i + 1]});
      }
    }
  }

  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> symbols_;
  std::deque<std::string> texts_;  // of each symbol; stay where they are
  std::vector<CountedWord> words_;
  std::unordered_map<SymbolPair, PairFacts, PairHash> pairs_;
  std::priority_queue<Entry> queue_;  // every pair with its count, or one that it had
  std::unordered_set<SymbolPair, PairHash> changed_;
};

}  // namespace

void expect_learnable(std::string_view line, const std::string& place) {
  each_word(line, [&](std::string_view word) {
    check(word.size() <= kMaxLearnedWord, ErrorKind::kBadInput,
          "{}: expected words of at most {} bytes to learn merges from, got one of {}", place,
          kMaxLearnedWord, word.size());
  });
}

void count_words(std::string_view line, WordCounts& counts) {
  each_word(line, [&](std::string_view word) {
    const auto found = counts.find(word);
    if (found != counts.end()) {
      ++found->second;
    } else {
      counts.emplace(word, 1);
    }
  });
}

BpeCodes learn_bpe(const WordCounts& counts, const BpeLearnOptions& options,
                   const std::function<void(std::int64_t)>& progress) {
  check(options.merges >= 1, ErrorKind::kUsage, "[bpe] merges: expected 1 or more, got {}",
        options.merges);
  check(options.min_count >= 1, ErrorKind::kUsage, "[bpe] min_count: expected 1 or more, got {}",
        options.min_count);
  constexpr std::int64_t kBetween = 500;  // calls of progress
  BpeLearner learner(counts);
  BpeCodes codes;
  while (std::ssize(codes.merges) < options.merges) {
    std::optional<BpeMerge> merge = learner.merge_best(options.min_count);
    if (!merge) break;
    codes.merges.push_back(std::move(*merge));
    if (progress && std::ssize(codes.merges) % kBetween == 0) progress(std::ssize(codes.merges));
  }
  return codes;
}

}  // namespace keel::text
