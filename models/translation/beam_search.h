// Beam search of one sentence on the host. Its caller reports the network's predictions for every
// open hypothesis, and the search chooses the hypotheses that stay open.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace keel::models {

struct BeamOptions {
  std::int64_t beam = 4;      // open hypotheses at a time; 1: greedy
  double length_penalty = 1;  // p of score / length^p, the length counting the end
  std::int64_t longest =
      200;  // symbols without the end; a hypothesis of this length takes the end
  // The dictionary's fillers, which stand for no symbol, are the numbers from here on.
  std::int32_t first_filler = std::numeric_limits<std::int32_t>::max();
};

// The network's predictions for one open hypothesis: its likeliest next symbols, the likeliest
// first, and the end. Numbers are logarithms of probabilities.
struct NextSymbols {
  std::span<const std::int32_t> symbols;
  std::span<const float> scores;
  float end_score = 0;
};

// A step (as in fairseq) scores every extension of every open hypothesis by its sum of logarithms
// and keeps the 2 beam best. Among equal scores the earlier hypothesis comes first, then the
// likelier symbol. An extension by the end is finished if it is among the first `beam` of these,
// and dropped otherwise; the first `beam` of the others stay open. Padding, the beginning and
// fillers are never taken, because no text has them, nor is the end as the first symbol. The search
// is done when `beam` hypotheses are finished. The best has the largest score /
// length^length_penalty; of equal ones it was finished first.
class BeamSearch {
 public:
  // `sentence` is its number, for errors.
  explicit BeamSearch(const BeamOptions& options, std::size_t sentence = 0)
      : options_(options), sentence_(sentence), open_(1) {}

  struct Hypothesis {
    std::vector<std::int32_t> symbols = {};  // without the end
    double score = 0;                        // of all symbols, and of the end when it is finished
    // The place, before the last step, of the hypothesis that this one extends.
    std::size_t parent = 0;
  };

  // The number of symbols of a hypothesis that the network must name: padding, the beginning, the
  // end and all fillers may be among them.
  static std::int64_t symbols_needed(std::int64_t beam, std::int64_t fillers) {
    return 2 * beam + 3 + fillers;
  }

  bool is_done() const { return is_done_; }
  // The hypotheses to ask the network about, the best first. Empty when the search is done.
  const std::vector<Hypothesis>& open() const { return open_; }
  // Takes the network's predictions for each. Throws Error{kDiverged} that names sentence and
  // symbol, both from 1 on, if a score is no logarithm of a probability.
  void take(std::span<const NextSymbols> said);
  // After the search: the best finished hypothesis.
  const Hypothesis& best() const;
  // After the search: all finished ones, the best first; of equal ones the one finished first.
  std::vector<Hypothesis> ranked() const;
  const std::vector<Hypothesis>& finished() const { return finished_; }
  // The score by which finished hypotheses are compared.
  double normalized(const Hypothesis& finished) const;

 private:
  struct Extension {
    std::size_t parent;
    std::int32_t symbol;
    double score;
  };
  void expect_logarithm(float score, std::size_t parent) const;
  bool may_follow(std::int32_t symbol, const Hypothesis& parent) const;
  std::vector<Extension> extensions(std::span<const NextSymbols> said) const;
  void finish_all(std::span<const NextSymbols> said);

  BeamOptions options_;
  std::size_t sentence_;
  std::vector<Hypothesis> open_, finished_;
  bool is_done_ = false;
};

}  // namespace keel::models
