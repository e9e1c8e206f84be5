// Sentence classification with a Transformer encoder: RT (two classes) and SST5 (five), as in Xu et
// al. 2019, section 4.1, and a user's own sentences with labels of any kind. What the paper leaves
// open is said beside each option.
#pragma once

#include <memory>
#include <optional>

#include "frontend/nn/transformer.h"
#include "frontend/task/model.h"
#include "frontend/text/vocabulary.h"
#include "models/text_classifier/data.h"

namespace keel::models {

struct TextClassifierOptions {
  std::string task = "rt";  // or "sst5", or "files": labels of your own (own_files.h)
  std::string norm = "layernorm";
  std::string place = "pre";    // of norms: before a sublayer, or "post", behind the sum
  std::string init = "xavier";  // of projections: Xavier-uniform, or "kaiming", U(+-1/sqrt(fan_in))
  std::string positions = "sinusoidal";  // or "learned"
  std::int64_t layers = 4, width = 128;
  std::int64_t heads = 4, feed_forward = 512;  // the paper says neither
  double dropout = 0.2;
  std::int64_t min_count = 2;  // training words that occur less often are unknown
  bool lower_case = true;

  static constexpr auto fields() {
    using T = TextClassifierOptions;
    return std::tuple{
        option("task", &T::task,
               "rt: film reviews, two classes; sst5: five; files: labels of your own",
               described("rt, sst5 or files")),
        option("norm", &T::norm, "the norm of the encoder layers and of what follows them",
               norm_name()),
        option("place", &T::place, "of norms: before a sublayer, or after the sum",
               described("pre or post")),
        option("init", &T::init, "of projections: Xavier-uniform, or U(+-1/sqrt(fan_in))",
               described("xavier or kaiming")),
        option("positions", &T::positions,
               "how positions are told: by sines, or by learned vectors",
               described("sinusoidal or learned")),
        option("layers", &T::layers, "encoder layers", between(1, 1000)),
        option("width", &T::width, "units of a word's vector and of the layers",
               described("an even number, 4 to 65536", between(4, 65536))),
        option("heads", &T::heads, "heads of the attention",
               described("a divisor of the width", at_least(1))),
        option("feed_forward", &T::feed_forward, "hidden units of a feed-forward layer",
               between(1, 1000000)),
        option("dropout", &T::dropout, "of embeddings and sublayers", fraction()),
        option("min_count", &T::min_count, "training words that occur less often count as unknown",
               at_least(1)),
        option("lower_case", &T::lower_case, "whether text is put into lower case")};
  }
  void validate() const;
};

//     x = dropout(sqrt(width) E[w] + positions)                      (rows, length, width)
//     `layers` encoder layers;  h = the mean over the words of norm(x);  logits = h W + b
// With norms behind the sums there is none before the mean.
class TextClassifier : public task::ModelWithOptions<TextClassifierOptions> {
 public:
  std::string_view name() const override { return "text_classifier"; }
  std::string_view summary() const override {
    return "sentence classification on RT, SST5 or your own files, Transformer encoder (Xu et al. "
           "2019)";
  }
  void prepare(const task::DataRequest& request) override;
  task::Assets assets() const override;
  void set_assets(const task::Assets& assets) override;

  std::string_view batch_unit() const override { return "tokens"; }
  std::unique_ptr<task::Splits> load(const task::DataRequest& request) const override;
  std::vector<task::OptionValues> data_forms(const std::string&) const override {
    return {{{"task", "files"}}, {{"task", "rt"}}, {{"task", "sst5"}}};
  }
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override;
  task::Sizes sizes(std::int64_t batch) const override;
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  std::vector<task::MetricInfo> metrics() const override;
  // Those of the data or of a checkpoint; before either is known, numbers.
  std::vector<std::string> class_names() const override;
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines) const override {
    return portion_decoder(lines, 1);
  }
  std::unique_ptr<task::Decoder> portion_decoder(std::span<const std::string> lines,
                                                 std::int64_t first) const override;

 private:
  std::vector<std::string> unnamed_classes() const;
  TextOptions text_options(const task::DataRequest& request) const;
  nn::TransformerOptions transformer() const;
  Value embed(nn::Net& net, Value tokens) const;

  // What numbers the words; known once the data or a checkpoint was read.
  std::shared_ptr<const text::Vocabulary> vocabulary_;
  std::vector<std::string> labels_;  // the names of the classes, known likewise
};

}  // namespace keel::models
