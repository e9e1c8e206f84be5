// The half of a backend that every CPU backend shares: its memory is the host's.
#pragma once

#include "src/runtime/backend.h"

namespace keel {

class HostBackend : public Backend {
 public:
  std::unique_ptr<Memory> allocate(std::int64_t bytes) override;
  std::unique_ptr<Memory> allocate_growing(std::int64_t bytes) override;
  std::unique_ptr<Readback> allocate_readback(std::int64_t bytes) override;
  Kernel copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) override;
  void run(std::span<const Kernel> kernels) override;
};

}  // namespace keel
