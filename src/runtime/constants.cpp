#include "src/runtime/constants.h"

#include <unordered_map>

namespace keel {

Constants::Constants(Backend& backend, const Graph& graph) : offsets_(graph) {
  std::unordered_map<std::string, std::int64_t> known;  // offset by content
  std::string all;
  for (Value leaf : graph.leaves(NodeKind::kConstant)) {
    const Tensor& constant = *graph.node(leaf).constant;
    const Tensor stored = constant.to(backend.storage(constant.dtype()));
    const std::string bytes(reinterpret_cast<const char*>(stored.data()),
                            std::size_t(stored.bytes()));
    const auto [place, is_new] = known.try_emplace(bytes, std::int64_t(all.size()));
    offsets_[leaf.node] = place->second;
    if (!is_new) continue;
    all += bytes;
    all.resize(std::size_t(aligned_size(std::int64_t(all.size()))));
  }
  if (graph.leaves(NodeKind::kConstant).empty()) return;
  memory_ = backend.allocate(std::int64_t(all.size()));
  memory_->upload(0, all.data(), std::int64_t(all.size()));
}

}  // namespace keel
