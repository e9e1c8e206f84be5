#include "models/char_lm/network.h"

#include <cmath>
#include <optional>

#include "frontend/nn/embedding.h"
#include "frontend/nn/layers.h"
#include "models/char_lm/memory.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/relative_attention.h"

namespace keel::models {
namespace {

class XlBuilder {
 public:
  XlBuilder(nn::Net& net, const XlOptions& options, Value input, Value begins)
      : net_(net), g_(net.graph), options_(options), begins_(begins) {
    length_ = g_.shape(input)[1];
    keys_ = options.memory + length_;
  }

  XlHidden build(Value input) {
    const nn::Embedding table(net_, "embedding", options_.symbols, options_.width,
                              {.init = drawn()});
    Value x = ops::scale(g_, table(input), std::sqrt(double(options_.width)));
    x = nn::dropout(net_, x, options_.dropout);
    const std::int64_t distances = options_.clamp > 0 ? std::min(options_.clamp + 1, keys_) : keys_;
    distances_ = dropped(distance_embeddings(net_, distances, options_.width));
    u_ = net_.parameter("u", {options_.width}, drawn());
    w_ = net_.parameter("w", {options_.width}, drawn());
    memory_.emplace(net_, begins_, length_, options_.memory);
    if (options_.memory > 0) filled_ = ops::cast(g_, memory_->filled(), DType::kI32);
    for (std::int64_t i = 1; i <= options_.layers; ++i) {
      const auto scope = g_.scope(fmt::format("layer{}", i));
      x = feed(attend(x));
    }
    return {nn::dropout(net_, x, options_.dropout), table.table()};
  }

 private:
  Initializer drawn() const { return nn::normal(options_.init_deviation); }
  // Distances are no rows of the batch: however an update is split, the same of them are dropped.
  Value dropped(Value distances) const {
    if (net_.mode != nn::Mode::kTrain || options_.dropout == 0) return distances;
    const RandomKey key{net_.random_key("distances").step, g_.constant(Tensor(DType::kI32, {}))};
    return ops::dropout(g_, distances, key, options_.dropout, std::int64_t(net_.seed));
  }
  bool is_pre() const { return options_.place == nn::NormPlace::kPre; }

  // Joins x and what a branch makes of it. A post-norm is of the sum.
  Value joined(const std::string& name, Value x, Value branch) const {
    const Value sum = ops::add(g_, x, nn::dropout(net_, branch, options_.dropout));
    return is_pre() ? sum : options_.norm(net_, name + "/norm", sum);
  }

  // A pre-norm is of the memory, too, as in the authors' program.
  Value attend(Value x) const {
    Value all = memory_->remembered("memory", x), own = x;
    if (is_pre()) {
      all = options_.norm(net_, "attention/norm", all);
      own = ops::slice_axis(g_, all, 1, options_.memory, length_);
    }
    return joined("attention", x, attention(own, all));
  }

  Value attention(Value own, Value all) const {
    const auto scope = g_.scope("attention");
    const auto project = [&](const char* name, Value v) {
      return nn::linear(net_, name, v, options_.width,
                        {.bias = false, .weight_init = options_.init});
    };
    const Value q = project("q", own), k = project("k", all), v = project("v", all);
    const Value y =
        ops::relative_attention(g_, {q, k, v, project("distance", distances_), u_, w_, filled_},
                                {.heads = options_.heads, .window = options_.window});
    return project("out", y);
  }

  Value feed(Value x) const {
    const nn::TransformerOptions options{.feed_forward = options_.feed_forward,
                                         .relu_dropout = options_.dropout,
                                         .init = options_.init};
    const Value in = is_pre() ? options_.norm(net_, "feed_forward/norm", x) : x;
    return joined("feed_forward", x, nn::feed_forward(net_, "feed_forward", in, options));
  }

  nn::Net& net_;
  Graph& g_;
  const XlOptions& options_;
  Value begins_;
  std::int64_t length_ = 0, keys_ = 0;
  std::optional<SegmentMemory> memory_;  // of every layer's inputs
  Value distances_, u_, w_, filled_;
};

}  // namespace

Value distance_embeddings(nn::Net& net, std::int64_t distances, std::int64_t width) {
  const std::int64_t half = width / 2;
  Tensor table(DType::kF64, {distances, width});
  const auto values = table.as<double>();
  for (std::int64_t k = 0; k < distances; ++k) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = double(k) * std::pow(10000.0, -2.0 * double(i) / double(width));
      values[std::size_t(k * width + i)] = std::sin(angle);
      values[std::size_t(k * width + half + i)] = std::cos(angle);
    }
  }
  return net.graph.constant(table.to(net.dtype));
}

XlHidden xl_hidden(nn::Net& net, const XlOptions& options, Value input, Value begins) {
  return XlBuilder(net, options, input, begins).build(input);
}

Value xl_logits(nn::Net& net, Value rows, Value table) {
  return nn::Linear::sharing(net, "softmax", table)(rows);
}

}  // namespace keel::models
