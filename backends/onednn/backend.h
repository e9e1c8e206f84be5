// The onednn backend: float32 training on x86 CPUs with oneDNN primitives, SIMD kernels of our own
// and oneTBB threads.
#pragma once

#include "backends/onednn/threads.h"
#include "src/runtime/host_backend.h"

namespace keel::onednn {

class OnednnBackend : public HostBackend {
 public:
  // threads: 0 for as many as the machine has. Throws as limit_instruction_set() does.
  explicit OnednnBackend(int threads);
  std::string_view name() const override { return "onednn"; }
  std::string description() const override;
  bool prefers_channels_last() const override { return true; }
  PackedLayout preferred_packing(const NodeContext& context) const override;
  bool prefers_loss_step(const NodeContext& context) const override;
  bool narrows_result(const NodeContext& context) const override;
  Prepared prepare(const NodeContext& context) override;
  void run(std::span<const Kernel> kernels) override;

 private:
  Threads threads_;
};

// Says what decides the bits of products in this process (backends/product_facts.h).
std::vector<std::pair<std::string, std::string>> product_facts();

}  // namespace keel::onednn
