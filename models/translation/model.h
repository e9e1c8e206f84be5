// Translation with a Transformer (Vaswani et al. 2017), as Xu et al. (2019) and Shen et al. (2020)
// trained it, both with fairseq.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "frontend/nn/transformer.h"
#include "frontend/task/task.h"
#include "models/translation/data.h"
#include "models/translation/line_form.h"
#include "models/translation/translator.h"

namespace keel::models {

// The norms that the option "norm" chooses; the others are layernorm.
enum class NormedSites {
  kAll,      // all of both stacks (Xu et al. 2019)
  kEncoder,  // the encoder's, the one after its last layer too (Shen et al. 2020)
  kFinal,    // those after the last layers
};
constexpr auto choice_words(NormedSites) {
  return std::to_array<std::string_view>({"all", "encoder", "final"});
}

enum class TranslationInit {
  kFairseq,     // Xavier-uniform, of the projections q, k, v with the gain 1/sqrt(2), whose biases
                // are U(+-1/sqrt(width)); other biases are 0
  kKaiming,     // U(+-1/sqrt(fan_in)), biases 0
  kX19Release,  // this only for the projections of attention, Xavier-uniform for feed-forward
};
constexpr auto choice_words(TranslationInit) {
  return std::to_array<std::string_view>({"fairseq", "kaiming", "x19_release"});
}

// Tables that are shared: those of both languages and the weights of the logits, those of the
// target language and of the logits, or none.
enum class SharedEmbeddings { kAll, kTarget, kNone };
constexpr auto choice_words(SharedEmbeddings) {
  return std::to_array<std::string_view>({"all", "target", "none"});
}

struct TranslationModelOptions {
  std::string corpus = "multi30k", languages = "de-en";  // of a folder with real data
  bool lower_case = true;
  bool tokenized = false;      // of the corpus "files": its lines are tokens already; of lines
                               // of a user: they are, and translations are to be, too
  std::int64_t merges = 0;     // of byte-pair encoding; 0: symbols are whole words
  bool fit_merges = false;     // as many as make source_symbols and target_symbols, in place
  std::int64_t min_count = 1;  // symbols that occur less often are unknown
  bool joint = true;           // both languages share merges and dictionary
  // The most symbols of a dictionary, the most frequent ones; 0: all. The first is of both
  // languages if they share it.
  std::int64_t source_symbols = 0, target_symbols = 0;
  std::int64_t most_words = 175;   // training pairs with a longer side are left out,
  double most_ratio = 1.5;         // and those with one side this many times the other; 0: none
  std::int64_t most_subwords = 0;  // above 0: this length and the ratio are of sub-words

  std::string norm = "layernorm";
  std::string final_norm = "";    // after the last layers, where those are normed; empty: as norm
  std::string scaling = "";       // of rows, in front of the norms that sites says; empty: none
  std::string scaled_norms = "";  // the scaling is in front of these only; empty: of any
  NormedSites sites = NormedSites::kAll;
  nn::NormPlace place = nn::NormPlace::kPre;
  TranslationInit init = TranslationInit::kFairseq;
  SharedEmbeddings embeddings = SharedEmbeddings::kAll;
  std::int64_t layers = 6, width = 512, heads = 4, feed_forward = 1024;
  double dropout = 0.3, attention_dropout = 0.1, relu_dropout = 0.1;
  double label_smoothing = 0.1;

  std::int64_t beam = 5;
  double length_penalty = 1;
  std::int64_t longest = 200;          // sub-words of a translation
  std::int64_t translated_rows = 500;  // sentences of the validation set for BLEU

  // The options are too many for one function.
  static constexpr auto data_fields() {
    using T = TranslationModelOptions;
    return std::tuple{
        option("corpus", &T::corpus, "format of the files in the data folder",
               described("multi30k, tatoeba, iwslt14, iwslt15, wmt or files")),
        option("languages", &T::languages,
               "source and target language, which end the names of their files",
               described("SOURCE-TARGET")),
        option("lower_case", &T::lower_case, "conversion of text to lower case"),
        option("tokenized", &T::tokenized,
               "for the corpus files: true if the lines are tokenized already"),
        option("merges", &T::merges, "merges of byte-pair encoding; 0: symbols are whole words",
               between(0, 10000000)),
        option("fit_merges", &T::fit_merges,
               "true for as many merges as give dictionaries of source_symbols and target_symbols, "
               "in place of merges and min_count"),
        option("min_count", &T::min_count,
               "least number of occurrences; rarer symbols count as unknown", at_least(1)),
        option("joint", &T::joint, "true if both languages share merges and dictionary"),
        option("source_symbols", &T::source_symbols,
               "size of the source dictionary, or of the common one if joint: its most frequent "
               "symbols; 0: all",
               at_least(0)),
        option("target_symbols", &T::target_symbols,
               "size of the target dictionary, unless joint: its most frequent symbols; 0: all",
               at_least(0)),
        option("most_words", &T::most_words,
               "most words of a side of a training pair; longer pairs are dropped; 0: no limit",
               at_least(0)),
        option("most_ratio", &T::most_ratio,
               "largest ratio of the lengths of a training pair; others are dropped; 0: no limit",
               described("0, or >= 1", at_least(0))),
        option("most_subwords", &T::most_subwords,
               "most sub-words of a side of a training pair; above 0, most_ratio counts sub-words "
               "instead of words; 0: no limit",
               at_least(0))};
  }
  static constexpr auto norm_fields() {
    using T = TranslationModelOptions;
    return std::tuple{
        option("norm", &T::norm, "norm at the places that sites names", norm_name()),
        option("final_norm", &T::final_norm,
               "norm after the last layer of encoder and decoder, if there is one; empty: the same "
               "as norm",
               described("a norm, or empty")),
        option("scaling", &T::scaling, "scaling of rows before these norms; empty: none",
               nn::scaling_name()),
        option("scaled_norms", &T::scaled_norms, "norms that the scaling precedes; empty: all",
               described("names of norms, with commas, or empty")),
        option("sites", &T::sites,
               "norms of the chosen kind: all, those of the encoder, or those after the last "
               "layers; the others are layernorm"),
        option("place", &T::place, nn::kPlaceAbout),
        option("init", &T::init,
               "initial weights. fairseq: Xavier-uniform, with the gain 1/sqrt(2) for attention; "
               "kaiming: U(+-1/sqrt(fan_in)); x19_release: that for attention, Xavier-uniform for "
               "feed-forward layers"),
        option("embeddings", &T::embeddings,
               "shared tables: both embeddings and the weights of the logits (all), the target's "
               "embedding and those weights (target), or none")};
  }
  static constexpr auto network_fields() {
    using T = TranslationModelOptions;
    return std::tuple{
        option("layers", &T::layers, "layers of the encoder and of the decoder", between(1, 1000)),
        option("width", &T::width, "width of symbol vectors and of the layers",
               described("an even number, 4 to 65536", between(4, 65536))),
        option("heads", &T::heads, "attention heads",
               described("a divisor of the width", at_least(1))),
        option("feed_forward", &T::feed_forward, "hidden units of a feed-forward layer",
               between(1, 1000000)),
        option("dropout", &T::dropout, "dropout rate of embeddings and sublayers", fraction()),
        option("attention_dropout", &T::attention_dropout, "dropout rate of attention weights",
               fraction()),
        option("relu_dropout", &T::relu_dropout,
               "dropout rate of the hidden units of feed-forward layers", fraction()),
        option("label_smoothing", &T::label_smoothing,
               "label smoothing: the probability that the loss spreads over all symbols",
               fraction()),
        option("beam", &T::beam, "beam width: hypotheses that the search keeps", between(1, 1000)),
        option("length_penalty", &T::length_penalty,
               "exponent of the length by which the log-probability of a hypothesis is divided",
               between(0, 100)),
        option("longest", &T::longest, "most sub-words of a translation", between(1, 10000)),
        option("translated_rows", &T::translated_rows,
               "validation sentences that are translated to measure BLEU", at_least(1))};
  }
  static constexpr auto fields() {
    return std::tuple_cat(data_fields(), norm_fields(), network_fields());
  }
  void validate() const;
};

// For sources (rows, s) and targets (rows, t); a target begins with the end mark and lacks its own
// last symbol:
//     x = dropout(sqrt(width) E[symbols] + positions)       for either language
//     memory = norm(encoder layers of x);  h = norm(decoder layers of x and memory)
//     logits = h D^T, D being a table of embeddings
// Some placements have no norm after the last layers. The loss is the cross entropy with
// label_smoothing, summed over the symbols of the targets, their ends included.
class TranslationNetwork final : public task::NetworkOf<TranslationModelOptions> {
 public:
  // Without a form the preparation of the training text is unknown.
  TranslationNetwork(const TranslationModelOptions& options, TranslationSubwords subwords,
                     std::optional<LineForm> form)
      : NetworkOf(options), subwords_(std::move(subwords)), form_(std::move(form)) {}

  const TranslationSubwords& subwords() const { return subwords_; }
  SearchOptions search_options() const;

  task::Assets assets() const override;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return pair_inputs(sizes);
  }
  task::Sizes sizes(std::int64_t batch) const override;
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  // The inputs of search_network.h.
  std::vector<task::Input> search_inputs(std::string_view network,
                                         const task::Sizes& sizes) const override;
  std::vector<NamedValue> build_search(nn::Net& net, std::string_view network,
                                       const task::Sizes& sizes,
                                       const task::Inputs& in) const override;
  // Translates lines as people write them if the training data were such lines, and otherwise lines
  // of tokens (LineForm).
  task::Answers answers() const override { return task::Answers::kPortions; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines,
                                         std::int64_t first) const override;
  task::WordCount word_count(std::span<const std::string> lines) const override;
  std::string note_on_lines() const override;

 private:
  struct Tables {
    Value source, target, logits;  // (symbols, width)
  };

  // Of the layer with this number, from 1 on.
  nn::TransformerOptions layer_options(bool is_encoder, std::int64_t layer) const;
  // The norm of this text, with the scaling if it is one that is scaled.
  nn::ScaledNorm scaled(const std::string& norm) const;
  nn::ScaledNorm final_norm(bool is_encoder) const;
  Tables tables(nn::Net& net) const;
  // Symbols (rows, length), positions (length, width).
  Value embed(nn::Net& net, Value table, Value symbols, Value positions) const;
  Value encode(nn::Net& net, const Tables& of, const task::Inputs& in) const;
  Value decode(nn::Net& net, Value x, const task::Inputs& in, Value memory) const;
  // After the last layer of the decoder, if the placement has a norm there.
  Value normed_output(nn::Net& net, Value x, Value mask) const;
  // The predictions for a search from h (rows, width): the symbols that may follow in each row.
  std::vector<NamedValue> ranked(nn::Net& net, const Tables& of, Value h) const;
  void build_encode(nn::Net& net, const task::Inputs& in) const;
  std::vector<NamedValue> build_step(nn::Net& net, const task::Sizes& sizes,
                                     const task::Inputs& in) const;

  TranslationSubwords subwords_;
  std::optional<LineForm> form_;
};

class Translation final : public task::TaskWithOptions<TranslationModelOptions> {
 public:
  std::string_view name() const override { return "translation"; }
  std::string_view summary() const override {
    return "translation with a Transformer (Xu et al. 2019, Shen et al. 2020)";
  }
  std::string_view batch_unit() const override { return "tokens"; }
  std::string_view item_unit() const override { return "tokens"; }
  // The first metric, which chooses the best weights, is the perplexity without label smoothing;
  // "bleu" is the BLEU of words.
  std::vector<task::MetricInfo> metrics() const override;
  std::vector<task::OptionValues> data_forms(const std::string& folder) const override;
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override {
    return restored(assets);
  }

 private:
  TranslationOptions data_options(const task::DataRequest& request) const;
  std::shared_ptr<const TranslationNetwork> restored(const task::Assets& assets) const;
};

}  // namespace keel::models
