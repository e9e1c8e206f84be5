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

struct WordLmOptions {
  WordFiles corpus = WordFiles::kPtb;
  std::int64_t min_count = 1, max_words = 0;
  std::string norm = "layernorm", scaling = "";
  nn::NormPlace place = nn::NormPlace::kPre;
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
               "files in the data folder: ptb.train.txt and so on (ptb), wiki.train.tokens "
               "(wikitext) or train.txt (files)"),
        option("min_count", &T::min_count,
               "least number of occurrences in the training data; rarer words count as unknown",
               at_least(1)),
        option("max_words", &T::max_words,
               "size of the vocabulary; other words count as unknown; 0: no limit", at_least(0)),
        option("norm", &T::norm, "norm of every layer", norm_name()),
        option("scaling", &T::scaling, "scaling of rows before every norm; empty: none",
               nn::scaling_name()),
        option("place", &T::place, nn::kPlaceAbout),
        option("final_norm", &T::final_norm,
               "true for a norm after the last layer too, if the placement has one"),
        option("attention", &T::attention,
               "attention: multilinear (products of keys and values), or softmax"),
        option("mask", &T::mask,
               "mask of the attention; with none, words also see later words, so that the network "
               "is not a language model"),
        option("layers", &T::layers, "layers, each with attention and feed-forward",
               between(1, 1000)),
        option("width", &T::width, "width of word vectors and of the layers",
               described("an even number, 4 to 65536", between(4, 65536))),
        option("feed_forward", &T::feed_forward, "hidden units of a feed-forward layer",
               between(1, 1000000)),
        option("rank", &T::rank, "width of queries, keys and values in multilinear attention",
               between(1, 65536)),
        option("cores", &T::cores, "cores of multilinear attention, which are averaged",
               between(1, 1000)),
        option("heads", &T::heads, "heads of softmax attention",
               described("a divisor of the width", at_least(1))),
        option("length", &T::length,
               "words of a segment, which sees no other segment; at most 512 with multilinear "
               "attention",
               between(1, 4096)),
        option("dropout", &T::dropout, "dropout rate of embeddings, sublayers and hidden units",
               fraction()),
        option("label_smoothing", &T::label_smoothing,
               "label smoothing: the probability that the loss spreads over all words", fraction()),
        option("gain_deviation", &T::gain_deviation,
               "standard deviation of the norms' initial gains; scalenorm and weightnorm keep "
               "their own",
               at_least(0)),
        option("cutoffs", &T::cutoffs,
               "first word of each cluster of the adaptive softmax; empty: plain softmax",
               described("ascending numbers, with commas, or empty"))};
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
