// Language modelling of bytes by Transformer-XL (Dai et al. 2019; with other norms Xu et al. 2019)
// or by a small Llama.
#pragma once

#include "frontend/nn/scaled_norm.h"
#include "models/char_lm/data.h"
#include "models/char_lm/llama.h"
#include "models/char_lm/network.h"

namespace keel::models {

enum class CharLmArchitecture { kTransformerXl, kLlama };
constexpr auto choice_words(CharLmArchitecture) {
  return std::to_array<std::string_view>({"transformer_xl", "llama"});
}

enum class CharLmInit {
  kNormal,   // N(0, init_deviation^2), as the release of Dai et al. 2019
  kKaiming,  // U(+-1/sqrt(fan_in)), but for embeddings, u and w (Xu et al. 2019, footnote 7)
};
constexpr auto choice_words(CharLmInit) {
  return std::to_array<std::string_view>({"normal", "kaiming"});
}

struct CharLmOptions {
  CharLmArchitecture architecture = CharLmArchitecture::kTransformerXl;
  std::string norm = "layernorm", scaling = "";
  nn::NormPlace place = nn::NormPlace::kPost;
  std::int64_t layers = 12, width = 512, heads = 8, kv_heads = 0, feed_forward = 2048;
  bool qk_norm = false, embedding_scalar = false;
  double dropout = 0.1, init_deviation = 0.02, gain_deviation = 0;
  CharLmInit init = CharLmInit::kNormal;
  std::int64_t segment = 512, memory = 512;
  data::ShortSegment short_segment = data::ShortSegment::kUse;
  std::int64_t evaluation_lanes = 10, evaluation_segment = 128, evaluation_memory = 896;
  bool same_length = false;
  std::int64_t clamp = 0;
  Reading alphabet = Reading::kBytes;
  std::string file = "enwik8";
  TextParts parts = TextParts::kByPlace;

  static constexpr auto network_fields() {
    using T = CharLmOptions;
    return std::tuple{
        option("architecture", &T::architecture,
               "transformer_xl: attention by contents and distances, ReLU units; llama: rotary "
               "embeddings, gated units, no biases"),
        option("norm", &T::norm, "norm used in both branches of each layer", norm_name()),
        option("scaling", &T::scaling, "scaling of rows before every norm; empty: none",
               nn::scaling_name()),
        option("place", &T::place, nn::kPlaceAbout),
        option("layers", &T::layers, "layers", between(1, 65536)),
        option("width", &T::width, "width of the layers, an even number", between(4, 65536)),
        option("heads", &T::heads, "attention heads",
               described("a divisor of the width", between(1, 65536))),
        option("kv_heads", &T::kv_heads,
               "llama: heads of keys and values; 0: as many as heads, those of the queries",
               described("0 or a divisor of the heads", between(0, 65536))),
        option("qk_norm", &T::qk_norm,
               "llama: true for an rmsnorm of every head's queries and keys before the rotation"),
        option(
            "embedding_scalar", &T::embedding_scalar,
            "llama: true for a learned factor of the embeddings, at first sqrt(width), as dyt and "
            "derf have it"),
        option("feed_forward", &T::feed_forward, "hidden units of the feed-forward layers",
               between(1, 1048576)),
        option("dropout", &T::dropout,
               "dropout rate of embeddings, distances, branches, feed-forward units and the last "
               "layer",
               fraction()),
        option("init", &T::init,
               "initial weights of the layers: N(0, init_deviation^2) or U(+-1/sqrt(fan_in)) "
               "(kaiming)"),
        option("init_deviation", &T::init_deviation,
               "initial standard deviation of embeddings, u and w, and with init = normal of the "
               "layers' weights",
               more_than(0)),
        option("gain_deviation", &T::gain_deviation,
               "standard deviation of the norms' initial gains; scalenorm and weightnorm keep "
               "their own",
               at_least(0))};
  }
  // How texts are read, and what attention remembers of them.
  static constexpr auto text_fields() {
    using T = CharLmOptions;
    return std::tuple{
        option("segment", &T::segment, "symbols of each lane in a training batch",
               between(1, 1048576)),
        option("memory", &T::memory, "symbols before its segment that attention sees in training",
               between(0, 1048576)),
        option("short_segment", &T::short_segment,
               "treatment in training of the last segment of the lanes if it is shorter"),
        option("evaluation_lanes", &T::evaluation_lanes, "lanes in an evaluation",
               between(1, 65536)),
        option("evaluation_segment", &T::evaluation_segment,
               "symbols of each lane in a batch of an evaluation", between(1, 1048576)),
        option("evaluation_memory", &T::evaluation_memory,
               "symbols before its segment that attention sees in an evaluation",
               between(0, 1048576)),
        option("same_length", &T::same_length,
               "true if each symbol of an evaluation sees evaluation_memory symbols, itself "
               "included; false for the whole memory and its segment so far"),
        option("clamp", &T::clamp, "largest distance that an evaluation distinguishes; 0: no limit",
               between(0, 1048576)),
        option("alphabet", &T::alphabet,
               "symbols: every byte, or all bytes but line feeds, which the release of "
               "Transformer-XL drops (txl)"),
        option("file", &T::file,
               "name of the file in the data folder; the file itself may end in .gz or .xz",
               described("a file's name")),
        option("parts", &T::parts,
               "parts of the file for training, validation and test: 90, 5 and 5 %, or the whole "
               "file for each")};
  }
  static constexpr auto fields() { return std::tuple_cat(network_fields(), text_fields()); }
  void validate() const;

 private:
  void validate_memory(bool has_batch_norm) const;
  void validate_heads() const;
  void validate_place() const;
};

// The loss of a symbol is its cross entropy, in nats, given the symbols before it in its lane that
// are in reach.
class CharLmNetwork final : public task::NetworkOf<CharLmOptions> {
 public:
  CharLmNetwork(const CharLmOptions& options, ByteAlphabet alphabet)
      : NetworkOf(options), alphabet_(std::move(alphabet)) {}

  const ByteAlphabet& alphabet() const { return alphabet_; }

  task::Assets assets() const override { return {{"alphabet", alphabet_.text()}}; }
  // Sizes are {lanes, length}.
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return data::lane_inputs(sizes);
  }
  task::Sizes sizes(std::int64_t batch) const override { return {batch, options_.segment}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;

  bool continues_text() const override { return true; }
  std::unique_ptr<task::Decoder> continuation(const task::Continuation& asked) const override;
  // "next", as decode::ContinuationModel has it.
  std::vector<task::Input> search_inputs(std::string_view network,
                                         const task::Sizes& sizes) const override;
  std::vector<NamedValue> build_search(nn::Net& net, std::string_view network,
                                       const task::Sizes& sizes,
                                       const task::Inputs& in) const override;

 private:
  // The memory's positions in this mode.
  std::int64_t memory(const nn::Net& net) const;
  nn::FanInit layer_init() const;
  XlOptions xl_options(const nn::Net& net) const;
  LlamaOptions llama_options(const nn::Net& net) const;
  // The logits (lanes * count, symbols) of the last `count` positions of each lane.
  Value logits(nn::Net& net, const task::Inputs& in, std::int64_t count) const;

  ByteAlphabet alphabet_;
};

class CharLm final : public task::TaskWithOptions<CharLmOptions> {
 public:
  std::string_view name() const override { return "char_lm"; }
  std::string_view summary() const override {
    return "bytes of enwik8 by Transformer-XL (Dai et al. 2019, Xu et al. 2019) or a small Llama";
  }
  std::string_view item_unit() const override { return "tokens"; }
  std::vector<task::MetricInfo> metrics() const override {
    return {{.name = "bpc", .unit = "bits", .of = task::bits_of}};
  }
  // Throws as ByteCorpus and ByteCorpus::numbered; data of a checkpoint's network have its
  // alphabet.
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override {
    return restored(assets);
  }

 private:
  // Throws Error{kUsage} for a reading of bytes that is not the training's.
  std::shared_ptr<const CharLmNetwork> restored(const task::Assets& assets) const;
  // A network with the alphabet of the training part, all of it, whatever train_rows is. Throws
  // Error{kBadInput} for a byte of the other parts that it does not have, before any training.
  std::shared_ptr<const CharLmNetwork> made(const ByteCorpus& corpus) const;
};

}  // namespace keel::models
