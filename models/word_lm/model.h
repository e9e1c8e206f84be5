// Word language models of PTB and WikiText-103: the tensorized Transformer of Ma et al. (2019), in
// which Shen et al. (2020) compare norms, and a plain Transformer beside it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontend/nn/multilinear.h"
#include "frontend/nn/transformer.h"
#include "frontend/task/task.h"
#include "models/word_lm/files.h"
#include "models/word_lm/scorer.h"
#include "models/word_lm/softmax.h"
#include "models/word_lm/writer.h"

namespace keel::models {

// The layers look at earlier words by one of these.
enum class WordAttention {
  kMultilinear,  // products of keys and values (src/ops/multilinear_attention.h)
  kSoftmax,      // probabilities of keys (src/ops/attention.h), the control
};
constexpr auto choice_words(WordAttention) {
  return std::to_array<std::string_view>({"multilinear", "softmax"});
}

// The release of Ma et al. has no mask: its words read those after them, so what it reports is not
// a perplexity. `none` shows that; all that it measures is called `ppl_of_leak`.
enum class WordMask { kCausal, kNone };
constexpr auto choice_words(WordMask) {
  return std::to_array<std::string_view>({"causal", "none"});
}

enum class WordNormPlace { kPre, kPost };  // before a sublayer, or after the sum
constexpr auto choice_words(WordNormPlace) {
  return std::to_array<std::string_view>({"pre", "post"});
}

struct WordLmOptions {
  WordFiles corpus = WordFiles::kPtb;
  std::int64_t min_count = 1, max_words = 0;
  std::string norm = "layernorm", scaling = "";
  WordNormPlace place = WordNormPlace::kPre;
  bool final_norm = false;
  WordAttention attention = WordAttention::kMultilinear;
  WordMask mask = WordMask::kCausal;
  std::int64_t layers = 3, width = 256, feed_forward = 2100;
  std::int64_t rank = 40, cores = 1, heads = 1;
  std::int64_t length = 32;
  double dropout = 0.3, label_smoothing = 0, gain_deviation = 0;
  std::string cutoffs = "";

  static constexpr auto fields() {
    using T = WordLmOptions;
    return std::tuple{
        option("corpus", &T::corpus,
               "the files in the folder of the data: ptb.train.txt, wiki.train.tokens or train.txt "
               "and their like"),
        option("min_count", &T::min_count, "training words that occur less often are unknown",
               at_least(1)),
        option("max_words", &T::max_words,
               "words that have a number, at the most; the others are unknown; 0: no limit",
               at_least(0)),
        option("norm", &T::norm, "the norm of every layer", norm_name()),
        option("scaling", &T::scaling, "a scaling of rows in front of every norm",
               nn::scaling_name()),
        option("place", &T::place, "of norms: before a sublayer, or after the sum"),
        option("final_norm", &T::final_norm,
               "with the place pre: whether there is a norm after the last layer too"),
        option("attention", &T::attention,
               "multilinear: products of keys and values; softmax: probabilities of keys"),
        option("mask", &T::mask,
               "none: words read those after them, which is no language model, and shows the leak"),
        option("layers", &T::layers, "layers of attention and feed-forward", between(1, 1000)),
        option("width", &T::width, "units of a word's vector and of the layers",
               described("an even number, 4 to 65536", between(4, 65536))),
        option("feed_forward", &T::feed_forward, "hidden units of a feed-forward layer",
               between(1, 1000000)),
        option("rank", &T::rank, "of multilinear attention: the width of queries, keys and values",
               between(1, 65536)),
        option("cores", &T::cores, "of multilinear attention: cores, whose mean it takes",
               between(1, 1000)),
        option("heads", &T::heads, "of softmax attention",
               described("a divisor of the width", at_least(1))),
        option("length", &T::length,
               "words of a segment, which sees no other; multilinear attention takes at most 512",
               between(1, 4096)),
        option("dropout", &T::dropout, "of embeddings, sublayers and hidden units", fraction()),
        option("label_smoothing", &T::label_smoothing,
               "the share of probability that the loss spreads over all words", fraction()),
        option("gain_deviation", &T::gain_deviation,
               "the standard deviation of the norms' gains at the start; scalenorm and weightnorm "
               "keep "
               "theirs",
               at_least(0)),
        option("cutoffs", &T::cutoffs,
               "of adaptive softmax: the first word of each cluster; empty: plain softmax",
               described("ascending numbers with commas, or nothing"))};
  }
  void validate() const;
  std::vector<std::int64_t> cutoff_numbers() const;
};

//     x = dropout(sqrt(width) E[w])                     (lanes, length, width)
//     `layers` layers of attention and feed-forward, then a norm if asked for
//     log p(next word) = log softmax(x E^T + b), or adaptive softmax with the rows of E
// Softmax attention adds sinusoidal positions to x. A segment sees no other; a shorter one, at the
// end of a text, has the weights of the first positions. Weights are N(0, 0.02^2), biases 0.
class WordLmNetwork final : public task::NetworkOf<WordLmOptions> {
 public:
  // Throws Error{kUsage} for cut-offs beyond the vocabulary.
  WordLmNetwork(const WordLmOptions& options, text::Vocabulary vocabulary);

  const text::Vocabulary& vocabulary() const { return vocabulary_; }
  task::Assets assets() const override { return {{"vocabulary", vocabulary_.text()}}; }
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return data::lane_inputs(sizes);
  }
  task::Sizes sizes(std::int64_t batch) const override { return {batch, options_.length}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  std::vector<task::Input> search_inputs(std::string_view network,
                                         const task::Sizes& sizes) const override {
    return network == kWordScores ? score_inputs(sizes) : window_inputs(sizes);
  }
  std::vector<NamedValue> build_search(nn::Net& net, std::string_view network, const task::Sizes&,
                                       const task::Inputs& in) const override;
  task::Answers answers() const override { return task::Answers::kAllLines; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines,
                                         std::int64_t first) const override {
    return std::make_unique<WordScorer>(vocabulary_, options_.length, lines, first);
  }
  bool continues_text() const override { return true; }
  std::unique_ptr<task::Decoder> continuation(const task::Continuation& asked) const override {
    return std::make_unique<WindowWriter>(vocabulary_, options_.length, asked);
  }

 private:
  nn::TransformerOptions transformer() const;
  nn::MultilinearOptions multilinear() const;
  WordSoftmax softmax(nn::Net& net) const;
  // (lanes, length, width), before the softmax
  Value hidden(nn::Net& net, Value table, Value words) const;

  text::Vocabulary vocabulary_;
};

class WordLm final : public task::TaskWithOptions<WordLmOptions> {
 public:
  std::string_view name() const override { return "word_lm"; }
  std::string_view summary() const override {
    return "word language models of PTB and WikiText-103, tensorized Transformer (Ma et al. 2019, "
           "Shen et al. 2020)";
  }
  std::string_view item_unit() const override { return "tokens"; }
  std::vector<task::MetricInfo> metrics() const override;
  std::vector<task::OptionValues> data_forms(const std::string& folder) const override;
  // Throws as files.h and corpus.h say, and Error{kUsage} for a text to train on of less than a
  // segment in every lane.
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override {
    return restored(assets);
  }

 private:
  std::shared_ptr<const WordLmNetwork> restored(const task::Assets& assets) const;
};

}  // namespace keel::models
