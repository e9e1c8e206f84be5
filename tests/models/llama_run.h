// A small Llama for tests of its parts.
#pragma once

#include "models/char_lm/llama.h"
#include "tests/models/helpers.h"
#include "tests/models/segment_run.h"

namespace keel::models {

using test::operator+;
using Names = std::set<std::string>;

inline const Settings kLlama{"model.architecture=llama", "model.norm=rmsnorm", "model.place=pre"};

inline train::Job llama_job(const Settings& settings) {
  return small_job(kLlama + settings, "char_lm");
}

// A small network with large weights, so that what differs shows: heads of 4 features.
inline LlamaOptions small_llama(std::int64_t memory = 0) {
  return {.symbols = 7,
          .layers = 2,
          .width = 16,
          .kv_heads = 2,
          .memory = memory,
          .init_deviation = 0.5,
          .layer = {.heads = 4,
                    .feed_forward = 12,
                    .norm = nn::Norm::parse("rmsnorm"),
                    .init = [](std::int64_t) { return nn::normal(0.5); }}};
}

class LlamaRun : public SegmentRun {
 public:
  LlamaRun(Backend& backend, const LlamaOptions& options, DType dtype = DType::kF64)
      : SegmentRun(
            backend,
            [&options](nn::Net& net, Value input, Value begins) {
              return llama_logits(net, options, llama_states(net, options, input, begins));
            },
            dtype) {}
};

// The graph of a segment of three symbols in two lanes.
inline Graph graph_of(const LlamaOptions& options) {
  Graph g;
  nn::Net net{.graph = g};
  const Value states = llama_states(net, options, g.input("input", {DType::kI32, {2, 3}}),
                                    g.input("begins", {DType::kU8, {2}}));
  llama_logits(net, options, states);
  return g;
}

inline Names parameters_of_llama(const LlamaOptions& options) {
  const std::vector<std::string> names = names_of(graph_of(options), NodeKind::kParameter);
  return {names.begin(), names.end()};
}

}  // namespace keel::models
