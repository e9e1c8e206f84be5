#include "backends/backends.h"

#include <algorithm>
#include <cstdlib>

#include "backends/backend_config.h"
#include "backends/null/backend.h"
#include "backends/product_facts.h"
#include "backends/reference/backend.h"
#include "src/core/nearest.h"
#ifdef KEEL_ONEDNN
#include "backends/onednn/backend.h"
#endif
#ifdef KEEL_CUDA
#include "backends/cuda/backend.h"
#endif

namespace keel {
namespace {

using Make = std::unique_ptr<Backend> (*)(const BackendOptions&);

struct Entry {
  BackendEntry entry;
  Make make;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list{
      {{"reference", "Eigen, float64, serial: the reference for the others", ""},
       [](const BackendOptions&) -> std::unique_ptr<Backend> {
         return std::make_unique<reference::ReferenceBackend>();
       }},
#ifdef KEEL_ONEDNN
      {{"onednn", "oneDNN, oneTBB and SIMD kernels, float32: training on CPUs", ""},
       [](const BackendOptions& options) -> std::unique_ptr<Backend> {
         return std::make_unique<onednn::OnednnBackend>(options.threads);
       }},
#else
      {{"onednn", "oneDNN, oneTBB and SIMD kernels, float32: training on CPUs",
        "built with -Donednn=disabled"},
       nullptr},
#endif
#ifdef KEEL_CUDA
      {{"cuda", KEEL_CUDA " kernels, float32: training on NVIDIA GPUs", ""},
       [](const BackendOptions& options) -> std::unique_ptr<Backend> {
         return std::make_unique<cuda::CudaBackend>(
             cuda::Options{.device = gpu_of(options), .tf32 = options.tf32});
       }},
#else
      {{"cuda", "CUDA kernels, float32: training on NVIDIA GPUs", "built with -Dcuda=disabled"},
       nullptr},
#endif
      {{"null", "runs the whole pipeline and computes nothing: shows overhead", ""},
       [](const BackendOptions&) -> std::unique_ptr<Backend> {
         return std::make_unique<null::NullBackend>();
       }},
  };
  return list;
}

}  // namespace

std::vector<BackendEntry> known_backends() {
  std::vector<BackendEntry> result;
  for (const Entry& e : entries()) result.push_back(e.entry);
  return result;
}

std::string default_backend() {
  if (const char* chosen = std::getenv("KEEL_BACKEND")) return chosen;
  for (const Entry& e : entries()) {
    if (e.entry.name == "onednn" && e.make) return "onednn";
  }
  return "reference";
}

int gpu_of([[maybe_unused]] const BackendOptions& options) {
#ifdef KEEL_CUDA
  return options.device ? *options.device : options.local_rank % cuda::device_count();
#else
  fail(ErrorKind::kBackendMissing, "backend cuda: built with -Dcuda=disabled");
#endif
}

std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions& options) {
  check(options.threads >= 0, ErrorKind::kUsage, "threads: expected 0 (all) or more, got {}",
        options.threads);
  std::vector<std::string> names;
  for (const Entry& e : entries()) {
    names.push_back(e.entry.name);
    if (e.entry.name != name) continue;
    check(e.make != nullptr, ErrorKind::kBackendMissing, "backend {}: {}", name, e.entry.missing);
    check(!options.device || name == "cuda", ErrorKind::kUsage,
          "device: expected the backend cuda, which takes a GPU by its number, got {}", name);
    return e.make(options);
  }
  fail(ErrorKind::kUsage, "backend: {}", unknown_name(name, names));
}

std::vector<std::pair<std::string, std::string>> product_facts(
    [[maybe_unused]] const Backend& backend) {
#ifdef KEEL_ONEDNN
  if (backend.name() == "onednn") return onednn::product_facts();
#endif
#ifdef KEEL_CUDA
  if (const auto* cuda = dynamic_cast<const cuda::CudaBackend*>(&backend)) {
    return {{"device", backend.description()}, {"products", cuda->tf32() ? "tf32" : "float32"}};
  }
#endif
  return {};
}

}  // namespace keel
