// Beam search of one sentence on the host: it is told what the network says of every hypothesis
// that is open, and says with which to go on.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace keel::models {

struct BeamOptions {
  std::int64_t beam = 4;      // hypotheses that are open at a time; 1: greedy
  double length_penalty = 1;  // p of score / length^p, the length counting the end
  std::int64_t longest =
      200;  // symbols without the end, which is taken there whatever else is best
  // The dictionary's fillers, which stand for nothing, are those from here on.
  std::int32_t first_filler = std::numeric_limits<std::int32_t>::max();
};

// What the network says of one open hypothesis: its most likely next symbols, the most likely one
// first, and how likely the end is. Logarithms of probabilities.
struct NextSymbols {
  std::span<const std::int32_t> symbols;
  std::span<const float> scores;
  float end_score = 0;
};

// One step (as fairseq has it) takes all extensions of all open hypotheses, their score being the
// sum of the logarithms, of equal ones that of the earlier hypothesis and then the likelier symbol
// first, and looks at the 2 beam best. An extension by the end is finished if it is among the first
// `beam` of them, and dropped if not; the first `beam` of the others stay open. Padding, the
// beginning and fillers are never taken, for no text has them, nor is the end as the first symbol.
// A sentence is done when `beam` hypotheses are finished. The best one has the largest score /
// length^length_penalty, of equal ones it came first.
class BeamSearch {
 public:
  // The sentence's number is for errors.
  explicit BeamSearch(const BeamOptions& options, std::size_t sentence = 0)
      : options_(options), sentence_(sentence), open_(1) {}

  struct Hypothesis {
    std::vector<std::int32_t> symbols = {};  // without the end
    double score = 0;                        // of all symbols, and of the end when it is finished
    // The place, before the last step, of the hypothesis that this one goes on from.
    std::size_t parent = 0;
  };

  // How many symbols of a hypothesis the network has to name: padding, the beginning, the end and
  // all fillers may be among them.
  static std::int64_t symbols_needed(std::int64_t beam, std::int64_t fillers) {
    return 2 * beam + 3 + fillers;
  }

  bool is_done() const { return is_done_; }
  // Those to ask the network about, the best first. Empty when all is done.
  const std::vector<Hypothesis>& open() const { return open_; }
  // What it says of each. Throws Error{kDiverged} that names sentence and symbol, both from 1 on,
  // when a score is no logarithm of a probability.
  void take(std::span<const NextSymbols> said);
  // When it is done: the best finished one.
  const Hypothesis& best() const;
  // When it is done: all finished ones, the best first and of equal ones the one that came first.
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
