// Sentence classification with a Transformer encoder: RT (two classes) and SST5 (five), as in Xu et
// al. 2019, sections 2.2 and 7.1, and a user's own sentences with labels of any kind. Comments on
// the options name the choices that the paper leaves open.
#pragma once

#include "frontend/data/text_rows.h"
#include "frontend/nn/transformer.h"
#include "frontend/task/task.h"
#include "frontend/text/vocabulary.h"
#include "models/text_classifier/corpus.h"

namespace keel::models {

struct TextClassifierOptions {
  std::string task = "rt";  // or "sst5", or "files": labels of your own (own_files.h)
  std::string norm = "layernorm";
  std::string scaling = "";  // of rows, in front of every norm; empty: none
  nn::NormPlace place = nn::NormPlace::kPre;
  std::string init = "xavier";  // of projections: Xavier-uniform, or "kaiming", U(+-1/sqrt(fan_in))
  std::string positions = "sinusoidal";  // or "learned"
  std::int64_t layers = 4, width = 128;
  std::int64_t heads = 4, feed_forward = 512;  // the paper says neither
  double dropout = 0.2, relu_dropout = 0;
  std::int64_t min_count = 2;  // training words that occur less often are unknown
  bool lower_case = true;

  static constexpr auto fields() {
    using T = TextClassifierOptions;
    return std::tuple{
        option(
            "task", &T::task,
            "data: film reviews of two classes (rt) or five (sst5), or files with your own labels",
            described("rt, sst5 or files")),
        option("norm", &T::norm, "norm of the encoder layers and of the layers after them",
               norm_name()),
        option("scaling", &T::scaling, "scaling of rows before every norm; empty: none",
               nn::scaling_name()),
        option("place", &T::place, nn::kPlaceAbout),
        option("init", &T::init,
               "initial weights of projections: Xavier-uniform, or U(+-1/sqrt(fan_in)) (kaiming)",
               described("xavier or kaiming")),
        option("positions", &T::positions, "encoding of positions: sinusoidal, or learned vectors",
               described("sinusoidal or learned")),
        option("layers", &T::layers, "encoder layers", between(1, 1000)),
        option("width", &T::width, "width of word vectors and of the layers",
               described("an even number, 4 to 65536", between(4, 65536))),
        option("heads", &T::heads, "attention heads",
               described("a divisor of the width", at_least(1))),
        option("feed_forward", &T::feed_forward, "hidden units of a feed-forward layer",
               between(1, 1000000)),
        option("dropout", &T::dropout, "dropout rate of embeddings and sublayers", fraction()),
        option("relu_dropout", &T::relu_dropout,
               "dropout rate of the hidden units of feed-forward layers", fraction()),
        option("min_count", &T::min_count,
               "least number of occurrences in the training data; rarer words count as unknown",
               at_least(1)),
        option("lower_case", &T::lower_case, "conversion of text to lower case")};
  }
  void validate() const;
};

//     x = dropout(sqrt(width) E[w] + positions)                      (rows, length, width)
//     `layers` encoder layers;  h = the mean over the words of norm(x);  logits = h W + b
// A placement without a norm after the last layer has none before the mean. Batches are
// data::TextRows'.
class TextClassifierNetwork final : public task::NetworkOf<TextClassifierOptions> {
 public:
  TextClassifierNetwork(const TextClassifierOptions& options, text::Vocabulary vocabulary,
                        std::vector<std::string> labels);

  const text::Vocabulary& vocabulary() const { return vocabulary_; }
  // The numbers of words that have blanks between them.
  std::vector<std::int32_t> numbers(const std::vector<std::string>& words) const;

  task::Assets assets() const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return data::text_inputs(sizes);
  }
  task::Sizes sizes(std::int64_t batch) const override;
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  std::vector<std::string> class_names() const override { return labels_; }
  task::Answers answers() const override { return task::Answers::kPortions; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines,
                                         std::int64_t first) const override;
  task::WordCount word_count(std::span<const std::string> lines) const override;

 private:
  std::vector<std::int32_t> numbers_of_line(const std::string& line) const;
  nn::TransformerOptions transformer() const;
  Value embed(nn::Net& net, Value tokens) const;

  text::Vocabulary vocabulary_;
  std::vector<std::string> labels_;  // the names of the classes
};

class TextClassifier final : public task::TaskWithOptions<TextClassifierOptions> {
 public:
  std::string_view name() const override { return "text_classifier"; }
  std::string_view summary() const override {
    return "sentence classification on RT, SST5 or your own files, Transformer encoder (Xu et al. "
           "2019)";
  }
  std::string_view batch_unit() const override { return "tokens"; }
  std::vector<task::MetricInfo> metrics() const override;
  std::vector<task::OptionValues> data_forms(const std::string& folder) const override;
  // Throws as files.h and own_files.h say, and Error{kBadInput} for data with other classes than
  // the known ones.
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override {
    return restored(assets);
  }

 private:
  std::shared_ptr<const TextClassifierNetwork> restored(const task::Assets& assets) const;
  Corpus read(const task::DataRequest& request, const std::vector<std::string>& labels) const;
};

}  // namespace keel::models
