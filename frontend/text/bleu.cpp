#include "frontend/text/bleu.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "frontend/text/unicode.h"
#include "frontend/text/vocabulary.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

using Tokens = std::span<const std::int32_t>;

// Sorted, so that equal ones stand together.
std::vector<Tokens> ngrams(Tokens tokens, std::size_t order) {
  std::vector<Tokens> all;
  for (std::size_t i = 0; i + order <= tokens.size(); ++i) all.push_back(tokens.subspan(i, order));
  std::ranges::sort(all,
                    [](Tokens a, Tokens b) { return std::ranges::lexicographical_compare(a, b); });
  return all;
}

// How many of each n-gram both sides have, summed.
std::int64_t common(const std::vector<Tokens>& a, const std::vector<Tokens>& b) {
  std::int64_t count = 0;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (std::ranges::equal(a[i], b[k])) {
      ++count, ++i, ++k;
    } else if (std::ranges::lexicographical_compare(a[i], b[k])) {
      ++i;
    } else {
      ++k;
    }
  }
  return count;
}

// Numbers for the words of two lines.
class Numbering {
 public:
  std::vector<std::int32_t> translation(std::string_view line) {
    std::vector<std::int32_t> ids;
    for (std::string_view word : split_at_spaces(line)) {
      ids.push_back(ids_.try_emplace(std::string(word), static_cast<std::int32_t>(ids_.size()))
                        .first->second);
    }
    return ids;
  }
  std::vector<std::int32_t> reference(std::string_view line, std::string_view unknown) {
    std::vector<std::int32_t> ids = translation(line);
    const auto found = ids_.find(unknown);
    if (found != ids_.end()) std::ranges::replace(ids, found->second, kNeverMatches);
    return ids;
  }

 private:
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids_;
};

constexpr std::string_view kUnknownWord = "<unk>";
// Stands for an unknown word where 13a would cut it to pieces: a character that no text has.
constexpr std::string_view kWholeUnknown = "\uFDD0";

std::string with_whole_unknowns(std::string_view line) {
  std::string out;
  for (std::string_view word : split_at_spaces(line)) {
    out += word == kUnknownWord ? kWholeUnknown : word;
    out += ' ';
  }
  return out;
}

std::string tokens_of(std::string_view line, BleuTokens how) {
  if (how == BleuTokens::k13a) return tokens_13a(line);
  return how == BleuTokens::kCompound ? with_split_compounds(line) : std::string(line);
}

}  // namespace

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (std::size_t n = 0; n < kBleuOrders; ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
  translation += other.translation;
  reference += other.reference;
  return *this;
}

BleuCounts count_ngrams(Tokens translation, Tokens reference) {
  BleuCounts counts;
  for (std::size_t n = 0; n < kBleuOrders; ++n) {
    const std::vector<Tokens> ours = ngrams(translation, n + 1);
    counts.totals[n] = std::ssize(ours);
    counts.matches[n] = common(ours, ngrams(reference, n + 1));
  }
  counts.translation = std::ssize(translation);
  counts.reference = std::ssize(reference);
  return counts;
}

BleuScore bleu_of(const BleuCounts& counts, BleuSmoothing smoothing) {
  BleuScore score{.counts = counts};
  const auto c = static_cast<double>(counts.translation), r = static_cast<double>(counts.reference);
  if (counts.translation > 0) score.brevity = c < r ? std::exp(1 - r / c) : 1;
  const bool smooth = smoothing == BleuSmoothing::kExponential && counts.matches[0] > 0;
  double share = 1, logarithms = 0;
  bool zero = false;
  for (std::size_t n = 0; n < kBleuOrders; ++n) {
    auto matches = static_cast<double>(counts.matches[n]);
    if (smooth && counts.matches[n] == 0 && counts.totals[n] > 0) matches = share /= 2;
    zero |= matches == 0;
    if (matches == 0) continue;
    score.precisions[n] = 100 * matches / static_cast<double>(counts.totals[n]);
    logarithms += std::log(score.precisions[n]);
  }
  if (!zero) score.bleu = score.brevity * std::exp(logarithms / kBleuOrders);
  return score;
}

std::string text_of(const BleuScore& score) {
  const double r = static_cast<double>(score.counts.reference);
  const double ratio = r > 0 ? static_cast<double>(score.counts.translation) / r : 0;
  return fmt::format(
      "BLEU = {:.2f}, {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP={:.3f}, ratio={:.3f}, "
      "hyp_len={}, ref_len={})",
      score.bleu, score.precisions[0], score.precisions[1], score.precisions[2],
      score.precisions[3], score.brevity, ratio, score.counts.translation, score.counts.reference);
}

void BleuCounter::add(std::string_view translation, std::string_view reference) {
  const bool whole = options_.tokens == BleuTokens::k13a;
  std::string ours(translation),
      theirs = whole ? with_whole_unknowns(reference) : std::string(reference);
  if (options_.lower_case) {
    ours = lower_case_unicode(ours);
    theirs = lower_case_unicode(theirs);
  }
  Numbering numbers;
  const auto ids = numbers.translation(tokens_of(ours, options_.tokens));
  counts_ += count_ngrams(ids, numbers.reference(tokens_of(theirs, options_.tokens),
                                                 whole ? kWholeUnknown : kUnknownWord));
  ++lines_;
  cut_stops_ += translation.ends_with(" .");
}

BleuScore BleuCounter::score() const {
  return bleu_of(counts_, options_.tokens == BleuTokens::k13a ? BleuSmoothing::kExponential
                                                              : BleuSmoothing::kNone);
}

std::string BleuCounter::signature() const {
  const bool as_13a = options_.tokens == BleuTokens::k13a;
  const char* tokens = as_13a                                     ? "13a"
                       : options_.tokens == BleuTokens::kCompound ? "compound"
                                                                  : "none";
  return fmt::format("nrefs:1|case:{}|eff:no|tok:{}|smooth:{}",
                     options_.lower_case ? "lc" : "mixed", tokens, as_13a ? "exp" : "none");
}

}  // namespace keel::text
