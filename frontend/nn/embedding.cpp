#include "frontend/nn/embedding.h"

#include <algorithm>

#include "src/ops/embedding.h"

namespace keel::nn {
namespace {

// The values that `init` draws, with zeros in one row.
Initializer with_zeros(Initializer init, std::int64_t row) {
  return [init = std::move(init), row](Tensor& table, const Philox& random) {
    init(table, random);
    const std::int64_t bytes = table.type().bytes() / table.shape()[0];
    std::fill_n(table.data() + row * bytes, bytes, std::byte{0});
  };
}

}  // namespace

Embedding::Embedding(Net& net, const std::string& name, std::int64_t words, std::int64_t width,
                     const EmbeddingOptions& options)
    : net_(&net), name_(name), padding_id_(options.padding_id) {
  check(padding_id_ >= -1 && padding_id_ < words, ErrorKind::kUsage,
        "[embedding] {}: padding_id: expected -1 or one of {} words, got {}", name, words,
        padding_id_);
  const auto scope = net.graph.scope(name);
  const bool has_padding = padding_id_ >= 0;
  const Initializer init = with_unit_vectors(options.init, options.unit);
  table_ =
      net.parameter("table", {words, width}, has_padding ? with_zeros(init, padding_id_) : init,
                    {.unit = options.unit});
}

Value Embedding::operator()(Value ids) const {
  const auto scope = net_->graph.scope(name_);
  return ops::embedding(net_->graph, table_, ids, padding_id_);
}

}  // namespace keel::nn
