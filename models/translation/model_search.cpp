// The networks of a search by the translation model.
#include <algorithm>

#include "frontend/nn/layers.h"
#include "frontend/nn/positions.h"
#include "models/translation/model.h"
#include "models/translation/search_network.h"
#include "src/ops/layout.h"
#include "src/ops/search.h"
#include "src/ops/softmax.h"

namespace keel::models {

using text::Dictionary;

std::vector<task::Input> TranslationNetwork::search_inputs(std::string_view network,
                                                           const task::Sizes& sizes) const {
  return models::search_inputs(network, sizes);
}

std::vector<NamedValue> TranslationNetwork::build_search(nn::Net& net, std::string_view network,
                                                         const task::Sizes& sizes,
                                                         const task::Inputs& in) const {
  if (network == kStepNetwork) return build_step(net, sizes, in);
  build_encode(net, in);
  return {};
}

std::vector<NamedValue> TranslationNetwork::ranked(nn::Net& net, const Tables& of, Value h) const {
  Graph& g = net.graph;
  const auto logits = nn::Linear::sharing(net, "logits", of.logits, {.bias = false});
  const Value said = ops::log_softmax(g, logits(h));
  const std::int64_t symbols = g.shape(said)[1];
  const std::int64_t fillers = symbols - subwords_.target->dictionary().first_filler();
  const std::int64_t needed = std::min(BeamSearch::symbols_needed(options_.beam, fillers), symbols);
  const ops::Ranked ranked = ops::top_k(g, said, needed);
  return {{"scores", ranked.values},
          {"symbols", ranked.indices},
          {"end", ops::slice_axis(g, said, 1, Dictionary::kEnd, 1)}};
}

void TranslationNetwork::build_encode(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const Value encoded = encode(net, tables(net), in);
  for (std::int64_t i = 1; i <= options_.layers; ++i) {
    const std::string name = fmt::format("decoder{}", i);
    const nn::AttentionMemory kept = kept_source(net, name, g.shape(encoded)),
                              made = nn::project_memory(net, name + "/memory_attention",
                                                        {encoded, in["source_mask"]},
                                                        layer_options(false, i));
    g.mark_update(kept.keys, made.keys);
    g.mark_update(kept.values, made.values);
  }
}

std::vector<NamedValue> TranslationNetwork::build_step(nn::Net& net, const task::Sizes& sizes,
                                                       const task::Inputs& in) const {
  Graph& g = net.graph;
  const std::int64_t rows = sizes.at(0), width = options_.width;
  const Tables of = tables(net);
  const Value all = nn::sinusoidal_positions(net, sizes.at(3), width);
  Value x = embed(net, of.target, ops::reshape(g, in["last"], {rows, 1}),
                  ops::take_rows(g, all, in["position"]));
  for (std::int64_t i = 1; i <= options_.layers; ++i) {
    const std::string name = fmt::format("decoder{}", i);
    nn::AttentionMemory source = kept_source(net, name, {sizes.at(1), sizes.at(2), width});
    source.mask = in["source_mask"];
    const auto join = [&](const nn::AttentionMemory& now) { return joined(net, name, in, now); };
    x = nn::decoder_step(net, name, {.x = x, .memory = source}, join, layer_options(false, i));
  }
  return ranked(net, of, ops::reshape(g, normed_output(net, x, {}), {rows, width}));
}

}  // namespace keel::models
