#include "models/translation/beam_search.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "frontend/text/dictionary.h"
#include "src/core/error.h"

namespace keel::models {

using text::Dictionary;

void BeamSearch::expect_logarithm(float score, std::size_t parent) const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  check(score < kInfinity, ErrorKind::kDiverged,
        "[translation] sentence {}, symbol {}: expected the logarithm of a probability, got {}",
        sentence_ + 1, open_[parent].symbols.size() + 1, score);
}

bool BeamSearch::may_follow(std::int32_t symbol, const Hypothesis& parent) const {
  if (symbol == Dictionary::kEnd) return !parent.symbols.empty();
  return symbol != Dictionary::kPad && symbol != Dictionary::kBegin &&
         symbol < options_.first_filler;
}

// The 2 beam best, the best first.
std::vector<BeamSearch::Extension> BeamSearch::extensions(std::span<const NextSymbols> said) const {
  std::vector<Extension> all;
  for (std::size_t parent = 0; parent < open_.size(); ++parent) {
    const NextSymbols& next = said[parent];
    for (std::size_t i = 0; i < next.symbols.size(); ++i) {
      expect_logarithm(next.scores[i], parent);
      const std::int32_t symbol = next.symbols[i];
      if (!may_follow(symbol, open_[parent])) continue;
      all.push_back({parent, symbol, open_[parent].score + double(next.scores[i])});
    }
  }
  std::ranges::stable_sort(all, std::greater{}, &Extension::score);
  all.resize(std::min(all.size(), static_cast<std::size_t>(2 * options_.beam)));
  return all;
}

void BeamSearch::finish_all(std::span<const NextSymbols> said) {
  for (std::size_t i = 0; i < open_.size(); ++i) {
    expect_logarithm(said[i].end_score, i);
    open_[i].score += double(said[i].end_score);
    open_[i].parent = i;
    finished_.push_back(std::move(open_[i]));
  }
  open_.clear();
  is_done_ = true;
}

void BeamSearch::take(std::span<const NextSymbols> said) {
  if (std::ssize(open_.front().symbols) == options_.longest) return finish_all(said);
  const auto beam = static_cast<std::size_t>(options_.beam);
  std::vector<Hypothesis> open;
  const std::vector<Extension> best = extensions(said);
  for (std::size_t rank = 0; rank < best.size() && open.size() < beam; ++rank) {
    const Extension& extension = best[rank];
    Hypothesis next{open_[extension.parent].symbols, extension.score, extension.parent};
    if (extension.symbol != Dictionary::kEnd) {
      next.symbols.push_back(extension.symbol);
      open.push_back(std::move(next));
    } else if (rank < beam && finished_.size() < beam) {
      finished_.push_back(std::move(next));
    }
  }
  is_done_ = finished_.size() == beam || open.empty();
  open_ = is_done_ ? std::vector<Hypothesis>{} : std::move(open);
}

double BeamSearch::normalized(const Hypothesis& finished) const {
  const auto length = double(finished.symbols.size() + 1);
  return finished.score / std::pow(length, options_.length_penalty);
}

std::vector<BeamSearch::Hypothesis> BeamSearch::ranked() const {
  std::vector<Hypothesis> all = finished_;
  std::ranges::stable_sort(all, std::greater{},
                           [this](const Hypothesis& h) { return normalized(h); });
  return all;
}

const BeamSearch::Hypothesis& BeamSearch::best() const {
  assert(!finished_.empty());
  return *std::ranges::max_element(finished_, {},
                                   [this](const Hypothesis& h) { return normalized(h); });
}

}  // namespace keel::models
