// BLEU (Papineni et al. 2002): the share of the translations' word sequences in the references.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keel::text {

inline constexpr std::size_t kBleuOrders = 4;

// The number of a reference token that matches nothing.
inline constexpr std::int32_t kNeverMatches = -1;

// All counts that BLEU is formed from; a corpus's counts are the sums of its sentences'. For
// n-grams, n = 1 to 4: how many the translations have, and how many of these the references have
// too, each at most as often as there. In tokens: the length of both sides.
struct BleuCounts {
  std::array<std::int64_t, kBleuOrders> matches{}, totals{};
  std::int64_t translation = 0, reference = 0;

  BleuCounts& operator+=(const BleuCounts& other);
  friend bool operator==(const BleuCounts&, const BleuCounts&) = default;
};

// The counts of one sentence. Tokens are numbers of any kind.
BleuCounts count_ngrams(std::span<const std::int32_t> translation,
                        std::span<const std::int32_t> reference);

// kExponential is sacrebleu's smoothing: the k-th of the orders, from 1 on, that have n-grams and
// no match takes 2^-k for its matches. If nothing matches at all, nothing is smoothed.
enum class BleuSmoothing : std::uint8_t { kNone, kExponential };

struct BleuScore {
  double bleu = 0;                               // in percent
  std::array<double, kBleuOrders> precisions{};  // in percent, smoothed if requested
  double brevity = 0;                            // exp(1 - r / c) for c < r, else 1; 0 for c = 0
  BleuCounts counts;
};
// brevity * exp(mean of the logarithms of the four precisions); 0 when one of them is 0.
BleuScore bleu_of(const BleuCounts& counts, BleuSmoothing smoothing = BleuSmoothing::kNone);
// "BLEU = 35.87, 69.5/44.2/30.1/20.9 (BP=0.961, ratio=0.962, hyp_len=126196, ref_len=131156)".
std::string text_of(const BleuScore& score);

// Tokenizations of lines. White space separates words; "<unk>" in a reference never matches.
//   kNone      the words
//   kCompound  the words, an "a-b" within one being "a ##AT##-##AT## b" (scripts for WMT En-De)
//   k13a       the tokens of mteval-v13a, as sacrebleu forms them
enum class BleuTokens : std::uint8_t { kNone, kCompound, k13a };
struct BleuOptions {
  BleuTokens tokens = BleuTokens::kNone;
  bool lower_case = false;
};

// Sums the counts of pairs of lines.
class BleuCounter {
 public:
  explicit BleuCounter(BleuOptions options = {}) : options_(options) {}
  void add(std::string_view translation, std::string_view reference);
  const BleuCounts& counts() const { return counts_; }
  // With 13a the score is smoothed as in sacrebleu, otherwise not at all.
  BleuScore score() const;
  // The score's settings, in sacrebleu's form: "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp".
  std::string signature() const;
  // Whether more than half of the translations, and at least one, end in a separate full stop. 13a
  // is not made for that: it splits text that is not tokenized yet.
  bool looks_tokenized() const { return 2 * cut_stops_ > lines_; }

 private:
  BleuOptions options_;
  BleuCounts counts_;
  std::int64_t lines_ = 0, cut_stops_ = 0;
};

// The tokens of a line, separated by single spaces.
std::string tokens_13a(std::string_view line);
std::string with_split_compounds(std::string_view line);

}  // namespace keel::text
