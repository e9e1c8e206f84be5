#include "backends/cuda/norm_backend.h"

#include "backends/cuda/kernels/kernels.h"
#include "src/runtime/kernel_types.h"

namespace keel::cuda {
namespace {

#include "src/runtime/norm_table.inc"

[[noreturn]] void refuse_callers_part(const char* what) {
  fail(ErrorKind::kInternal, "[cuda] {}: it is the caller's", what);
}

}  // namespace

Prepared NormBackend::prepare(const NodeContext& context) {
  return prepare_from(norm_table(), *this, context);
}

std::unique_ptr<Memory> NormBackend::allocate(std::int64_t) { refuse_callers_part("memory"); }

std::unique_ptr<Readback> NormBackend::allocate_readback(std::int64_t) {
  refuse_callers_part("memory of the host");
}

Kernel NormBackend::copy(const TensorRef&, const TensorRef&, const TensorRef&) {
  refuse_callers_part("a copy");
}

void NormBackend::run(std::span<const Kernel>) { refuse_callers_part("a run"); }

}  // namespace keel::cuda
