// Translation with a Transformer (Vaswani et al. 2017), as Xu et al. (2019) and Shen et al. (2020)
// trained it, both with fairseq.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "frontend/nn/transformer.h"
#include "frontend/task/model.h"
#include "models/translation/data.h"
#include "models/translation/line_form.h"
#include "models/translation/translator.h"

namespace keel::models {

// Which norms are of the kind that the option "norm" names; the others are layernorm.
enum class NormedSites {
  kAll,      // all of both stacks (Xu et al. 2019)
  kEncoder,  // the encoder's, the one behind its last layer too (Shen et al. 2020)
  kFinal,    // those behind the last layers
};
constexpr auto choice_words(NormedSites) {
  return std::to_array<std::string_view>({"all", "encoder", "final"});
}

enum class TranslationInit {
  kFairseq,     // Xavier-uniform, of the projections q, k, v with the gain 1/sqrt(2), whose biases
                // are U(+-1/sqrt(width)); other biases are 0
  kKaiming,     // U(+-1/sqrt(fan_in)), biases 0
  kX19Release,  // so for the projections of attention alone, Xavier-uniform for feed-forward layers
};
constexpr auto choice_words(TranslationInit) {
  return std::to_array<std::string_view>({"fairseq", "kaiming", "x19_release"});
}

// Which tables are one: those of both languages and the weights of the logits, those of the target
// language and of the logits, or none.
enum class SharedEmbeddings { kAll, kTarget, kNone };
constexpr auto choice_words(SharedEmbeddings) {
  return std::to_array<std::string_view>({"all", "target", "none"});
}

enum class TranslationPlace { kPre, kPost };  // of norms: before a sublayer, or behind the sum
constexpr auto choice_words(TranslationPlace) {
  return std::to_array<std::string_view>({"pre", "post"});
}

struct TranslationModelOptions {
  std::string corpus = "multi30k", languages = "de-en";  // of a folder with real data
  bool lower_case = true;
  bool tokenized = false;          // of the corpus "files": its lines are tokens already; of lines
                                   // of a user: they are, and translations are to be, too
  std::int64_t merges = 0;         // of byte-pair encoding; 0: symbols are whole words
  std::int64_t min_count = 1;      // symbols that occur less often are unknown
  bool joint = true;               // both languages share merges and dictionary
  std::int64_t most_words = 175;   // training pairs with a longer side are left out,
  double most_ratio = 1.5;         // and those with one side so many times the other
  std::int64_t most_subwords = 0;  // above 0: this length and the ratio are of sub-words

  std::string norm = "layernorm";
  std::string final_norm = "";  // behind the last layers, where those are normed; empty: as norm
  NormedSites sites = NormedSites::kAll;
  TranslationPlace place = TranslationPlace::kPre;
  TranslationInit init = TranslationInit::kFairseq;
  SharedEmbeddings embeddings = SharedEmbeddings::kAll;
  std::int64_t layers = 6, width = 512, heads = 4, feed_forward = 1024;
  double dropout = 0.3, attention_dropout = 0.1, relu_dropout = 0.1;
  double label_smoothing = 0.1;

  std::int64_t beam = 5;
  double length_penalty = 1;
  std::int64_t longest = 200;          // sub-words of a translation
  std::int64_t translated_rows = 500;  // sentences of the validation set whose BLEU is measured

  static constexpr auto fields() {
    using T = TranslationModelOptions;
    return std::tuple{field("corpus", &T::corpus),
                      field("languages", &T::languages),
                      field("lower_case", &T::lower_case),
                      field("tokenized", &T::tokenized),
                      field("merges", &T::merges),
                      field("min_count", &T::min_count),
                      field("joint", &T::joint),
                      field("most_words", &T::most_words),
                      field("most_ratio", &T::most_ratio),
                      field("most_subwords", &T::most_subwords),
                      field("norm", &T::norm),
                      field("final_norm", &T::final_norm),
                      field("sites", &T::sites),
                      field("place", &T::place),
                      field("init", &T::init),
                      field("embeddings", &T::embeddings),
                      field("layers", &T::layers),
                      field("width", &T::width),
                      field("heads", &T::heads),
                      field("feed_forward", &T::feed_forward),
                      field("dropout", &T::dropout),
                      field("attention_dropout", &T::attention_dropout),
                      field("relu_dropout", &T::relu_dropout),
                      field("label_smoothing", &T::label_smoothing),
                      field("beam", &T::beam),
                      field("length_penalty", &T::length_penalty),
                      field("longest", &T::longest),
                      field("translated_rows", &T::translated_rows)};
  }
  void validate() const;
};

// Of sources (rows, s) and targets (rows, t), which begin with the end mark in the place of their
// last symbol:
//     x = dropout(sqrt(width) E[symbols] + positions)       for either language
//     memory = norm(encoder layers of x);  h = norm(decoder layers of x and memory)
//     logits = h D^T, D being a table of embeddings
// With norms behind the sums there is none behind the last layers. The loss is the cross entropy,
// with label_smoothing, summed over the symbols of the targets, their ends included.
class Translation : public task::ModelWithOptions<TranslationModelOptions> {
 public:
  std::string_view name() const override { return "translation"; }
  std::string_view summary() const override {
    return "translation with a Transformer (Xu et al. 2019, Shen et al. 2020)";
  }
  void prepare(const task::DataRequest& request) override;
  task::Assets assets() const override;
  void set_assets(const task::Assets& assets) override;

  std::string_view batch_unit() const override { return "tokens"; }
  std::unique_ptr<task::Splits> load(const task::DataRequest& request) const override;
  std::vector<task::OptionValues> data_forms(const std::string& folder) const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return pair_inputs(sizes);
  }
  task::Sizes sizes(std::int64_t batch) const override;
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  // The first, by which the best weights are chosen, is the perplexity without label smoothing;
  // "bleu" is that of words.
  std::vector<task::MetricInfo> metrics() const override;
  // Translates lines as people write them, where the training data were such lines, and otherwise
  // lines of tokens (LineForm).
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines) const override {
    return portion_decoder(lines, 1);
  }
  std::unique_ptr<task::Decoder> portion_decoder(std::span<const std::string> lines,
                                                 std::int64_t first) const override;
  std::string note_on_lines() const override;
  // Those of search_network.h.
  std::vector<task::Input> search_inputs(std::string_view network,
                                         const task::Sizes& sizes) const override;
  std::vector<NamedValue> build_search(nn::Net& net, std::string_view network,
                                       const task::Sizes& sizes,
                                       const task::Inputs& in) const override;

 private:
  struct Tables {
    Value source, target, logits;  // (symbols, width)
  };

  TranslationOptions data_options(const task::DataRequest& request) const;
  SearchOptions search_options() const;
  nn::TransformerOptions layer_options(bool is_encoder) const;
  nn::Norm final_norm(bool is_encoder) const;
  Tables tables(nn::Net& net) const;
  // Symbols (rows, length), positions (length, width).
  Value embed(nn::Net& net, Value table, Value symbols, Value positions) const;
  Value encode(nn::Net& net, const Tables& of, const task::Inputs& in) const;
  Value decode(nn::Net& net, Value x, const task::Inputs& in, Value memory) const;
  // Behind the last layer of the decoder, where norms stand before the sublayers.
  Value normed_output(nn::Net& net, Value x, Value mask) const;
  // What a search asks of h (rows, width): the symbols that may follow in every row.
  std::vector<NamedValue> ranked(nn::Net& net, const Tables& of, Value h) const;
  void build_encode(nn::Net& net, const task::Inputs& in) const;
  std::vector<NamedValue> build_step(nn::Net& net, const task::Sizes& sizes,
                                     const task::Inputs& in) const;

  // What numbers the symbols; known once the data or a checkpoint was read.
  TranslationSubwords subwords_;
  std::optional<LineForm> form_;  // nothing: a checkpoint does not say it
};

}  // namespace keel::models
