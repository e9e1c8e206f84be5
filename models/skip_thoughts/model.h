// Skip-thoughts (Kiros et al. 2015): vectors of sentences that predict the neighbouring sentences,
// with the layer normalization of Ba et al. 2016, section 6.3: the model uni-skip.
#pragma once

#include <memory>

#include "frontend/nn/embedding.h"
#include "frontend/nn/recurrent.h"
#include "frontend/task/task.h"
#include "models/skip_thoughts/data.h"
#include "models/skip_thoughts/vectors.h"

namespace keel::models {

// The steps at which a decoder has the vector of the sentence.
enum class ThoughtCondition {
  kFirst,      // only its first state, as in the program of Kiros et al. 2015, which Ba et al. ran
  kEveryStep,  // every input as well, as in the equations of Kiros et al. 2015
};
constexpr auto choice_words(ThoughtCondition) {
  return std::to_array<std::string_view>({"first", "every_step"});
}

struct SkipThoughtsOptions {
  std::string norm = "layernorm";  // at the four products of every GRU
  nn::NormOf norm_of = nn::NormOf::kProducts;
  std::int64_t width = 2400, word_width = 620;  // of sentences, of words
  ThoughtCondition condition = ThoughtCondition::kFirst;
  std::int64_t symbols = 20000;  // the most words that have a number
  std::int64_t most_words = 30;  // of a sentence
  bool lower_case = true;
  bool summed_loss = false;  // over the words of a batch, as in the release, not their mean
  std::string vectors = "";  // a file of vectors for words that training did not have; empty: none

  static constexpr auto fields() {
    using T = SkipThoughtsOptions;
    return std::tuple{
        option("norm", &T::norm, "norm at the four products of every GRU", norm_name()),
        option("norm_of", &T::norm_of, nn::kNormOfHelp),
        option("width", &T::width, "width of sentence vectors", between(1, 65536)),
        option("word_width", &T::word_width, "width of word vectors", between(1, 65536)),
        option("condition", &T::condition,
               "place where a decoder takes the sentence vector: its first state, or every step"),
        option("symbols", &T::symbols, "size of the vocabulary, special symbols included",
               between(5, 10000000)),
        option("most_words", &T::most_words,
               "most words of a sentence; longer ones and their neighbours are dropped",
               between(1, 60)),
        option("lower_case", &T::lower_case, "conversion of sentences to lower case"),
        option("summed_loss", &T::summed_loss,
               "true for a loss that is the sum over the words of a micro-batch; false for their "
               "mean"),
        option("vectors", &T::vectors,
               "file with vectors for words that are not in the training data; empty: none",
               described("a file, or empty"))};
  }
  void validate() const;
};

//     h = the last state of a GRU over E[w], w the words of a sentence with its end
//     the sentences before and after: each has a GRU of its own from the state h on, over E of its
//     words so far; p(next word) = softmax(state W + b), and both share W and b
// With condition=every_step a decoder's input is [E[w] h], by which its gates and its candidate
// have the terms C h of Kiros et al. 2015, eq. 5 to 7.
// The loss is the mean of -log p over the words of both neighbours. With summed_loss it is the sum
// over those of the batch, as in the release, which clips the gradient of that sum: the logged loss
// is the sum, and the summed loss is the sum times the words. The metric is the mean.
class SkipThoughtsNetwork final : public task::NetworkOf<SkipThoughtsOptions> {
 public:
  SkipThoughtsNetwork(const SkipThoughtsOptions& options, text::Dictionary dictionary)
      : NetworkOf(options), dictionary_(std::move(dictionary)) {}

  const text::Dictionary& dictionary() const { return dictionary_; }

  task::Assets assets() const override { return {{"dictionary", dictionary_.text()}}; }
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return triple_inputs(sizes);
  }
  task::Sizes sizes(std::int64_t batch) const override { return {batch, 12, 16}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  std::vector<task::Input> search_inputs(std::string_view network,
                                         const task::Sizes& sizes) const override {
    return vector_inputs(network, sizes, options_.word_width);
  }
  std::vector<NamedValue> build_search(nn::Net& net, std::string_view network, const task::Sizes&,
                                       const task::Inputs& in) const override;
  // A sentence a line, words separated by spaces; the answer is its vector h of length 1, numbers
  // separated by spaces. With `vectors` a word that training did not have gets the vector to which
  // expansion.h maps the file's.
  task::Answers answers() const override { return task::Answers::kAllLines; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines,
                                         std::int64_t first) const override;
  task::WordCount word_count(std::span<const std::string> lines) const override;

 private:
  nn::Embedding words(nn::Net& net) const;
  nn::Gru gru(nn::Net& net, const std::string& name, std::int64_t in) const;
  // The inputs of a decoder: the words said so far (steps, rows, word_width), and h (rows, width).
  Value conditioned(Graph& g, Value said, Value h) const;

  text::Dictionary dictionary_;
};

class SkipThoughts final : public task::TaskWithOptions<SkipThoughtsOptions> {
 public:
  std::string_view name() const override { return "skip_thoughts"; }
  std::string_view item_unit() const override { return "tokens"; }
  std::string_view summary() const override {
    return "sentence vectors from neighbours, GRU (Kiros et al. 2015, Ba et al. 2016)";
  }
  std::vector<task::MetricInfo> metrics() const override;
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override {
    return restored(assets);
  }

 private:
  std::shared_ptr<const SkipThoughtsNetwork> restored(const task::Assets& assets) const;
};

}  // namespace keel::models
