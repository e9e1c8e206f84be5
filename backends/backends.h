// The backends of this build by name. This is the only place that names them all.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/runtime/backend.h"

namespace keel {

struct BackendOptions {
  int threads = 0;    // 0: as many as the machine has
  bool tf32 = false;  // cuda: matrix products may round their factors to 10 bits of mantissa
  // cuda: the number of the GPU, as CUDA counts; without one the processes of a machine that were
  // started together, of which this is number `local_rank`, take its GPUs in turn.
  std::optional<int> device = std::nullopt;
  int local_rank = 0;
};

struct BackendEntry {
  std::string name, summary;
  std::string missing;  // the reason why it is not in this build; empty if it is
};
std::vector<BackendEntry> known_backends();

// The backend that KEEL_BACKEND in the environment names, else the best CPU backend of this build:
// onednn if it is built in, else reference.
std::string default_backend();

// Throws Error{kUsage} for an unknown name (with the nearest known one) and Error{kBackendMissing}
// for a backend that is not in this build or cannot run here.
std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions& options = {});

// The number of the GPU that the cuda backend takes with these options. Throws
// Error{kBackendMissing} if this build or this machine has no GPU.
int gpu_of(const BackendOptions& options);

}  // namespace keel
