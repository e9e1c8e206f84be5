// Plans on the CPU.
#include "backends/onednn/norm_backend.h"
#include "backends/reference/backend.h"
#include "plugin/c/callers_threads.h"
#include "plugin/c/plan.h"

namespace keel::plugin {
namespace {

// Float64 arrays run on the reference, but for an op that takes only float64.
Backend& backend_for(const Request& request) {
  static onednn::NormBackend fast;
  static reference::ReferenceBackend judge;
  const auto& inputs = request.inputs;
  const bool is_double = !inputs.empty() && inputs[0] && inputs[0]->dtype == DType::kF64 &&
                         input_types(find_op(request.op), 0).contains(DType::kF32);
  return is_double ? static_cast<Backend&>(judge) : fast;
}

class HostPlan : public Plan {
 public:
  explicit HostPlan(const Request& request) : Plan(request, backend_for(request)) {}

  void run(const Arrays& arrays, const keel_executor* executor) const override {
    const Binding binding = bound(arrays);
    const std::vector<StridedArray> not_contiguous = strided(arrays, binding);
    if (executor == nullptr || executor->run == nullptr) return start(binding, not_contiguous, 1);
    CallersThreads threads(*executor);
    const onednn::EnteredExecutor entered(threads);
    start(binding, not_contiguous, threads.threads());
    threads.check_done();
  }
};

}  // namespace

std::unique_ptr<Plan> plan_on_host(const Request& request) {
  return std::make_unique<HostPlan>(request);
}

}  // namespace keel::plugin
