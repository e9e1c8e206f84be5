// The functions of keel/norm.h: what the caller gives is checked and becomes a plan; whatever is
// thrown becomes a status and a text.
#include "plugin/c/keel/norm.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "backends/onednn/norm_backend.h"
#include "plugin/c/cuda_library.h"
#include "plugin/c/plan.h"
#include "plugin/c/sums.h"
#include "src/core/failure.h"
#include "src/ops/norm/norm_ops.h"

struct keel_plan {
  std::unique_ptr<keel::plugin::Plan> plan;
};

namespace keel::plugin {
namespace {

static_assert(KEEL_CUDA_FAILED == int(ErrorKind::kCheckFailed) &&
              KEEL_USAGE == int(ErrorKind::kUsage) && KEEL_MEMORY == int(ErrorKind::kMemory) &&
              KEEL_UNSUPPORTED == int(ErrorKind::kBackendMissing) &&
              KEEL_INTERNAL == int(ErrorKind::kInternal));

// The buffer has a fixed size, so that a lack of memory can be reported, too.
thread_local char last_error[1024] = "";

void remember(std::string_view text) {
  const std::size_t length = std::min(text.size(), sizeof(last_error) - 1);
  std::copy_n(text.data(), length, last_error);
  last_error[length] = 0;
}

// The status of the exception that is being handled, whose text becomes that of keel_error().
int failed() noexcept {
  try {
    const Failure failure = current_failure();
    remember(failure.text);
    return int(failure.kind);
  } catch (...) {
    remember("out of memory");
    return KEEL_MEMORY;
  }
}

// Runs body and returns a status.
template <class Body>
int guarded(const Body& body) noexcept {
  try {
    body();
    return KEEL_OK;
  } catch (...) {
    return failed();
  }
}

std::string_view text_of(GradientKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"none", "exact", "detached", "surrogate"};
  return kNames[std::size_t(kind)];
}

std::string_view text_of(NormGroups groups) {
  constexpr std::array<std::string_view, 5> kNames{"rows", "parts", "sequences", "columns",
                                                   "elements"};
  return kNames[std::size_t(groups)];
}

std::vector<const OpInfo*> all_ops() {
  std::vector<const OpInfo*> ops(norm_ops().begin(), norm_ops().end());
  for (const SumOp& sum : sum_ops()) ops.push_back(&sum.info);
  return ops;
}

std::string list_facts() {
  std::string text;
  for (const OpInfo* op : all_ops()) {
    text += fmt::format("{}\t{}\t{}\t{}\n", op->name, fmt::join(op->output_names, ","),
                        text_of(op->gradient), op->norm ? text_of(op->norm->groups) : "none");
  }
  return text;
}

std::string list_ops() {
  std::string text;
  for (const OpInfo* op : all_ops()) {
    text += std::string(op->name) + '\t';
    for (int i = 0; i < int(op->inputs.size()); ++i) {
      text += (i > 0 ? "," : "") + input_name(*op, i);
    }
    text += '\t' + op->attrs.text() + '\n';
  }
  return text;
}

}  // namespace
}  // namespace keel::plugin

using namespace keel::plugin;  // NOLINT: the functions of the interface are outside of namespaces

int32_t keel_abi(void) { return KEEL_ABI; }

// The first call makes a text; if there is no memory for it, the next call tries again.
const char* keel_info(void) {
  const char* text = nullptr;
  guarded([&] {
    static const std::string made =
        "keel " KEEL_VERSION ", " + keel::onednn::NormBackend().description();
    text = made.c_str();
  });
  return text;
}

const char* keel_error(void) { return last_error; }

const char* keel_norm_ops(void) {
  const char* text = nullptr;
  guarded([&] {
    static const std::string made = list_ops();
    text = made.c_str();
  });
  return text;
}

const char* keel_norm_facts(void) {
  const char* text = nullptr;
  guarded([&] {
    static const std::string made = list_facts();
    text = made.c_str();
  });
  return text;
}

int keel_norm_prepare(const keel_request* request, keel_plan** plan) {
  return guarded([&] {
    keel::check(plan != nullptr, keel::ErrorKind::kUsage, "plan: expected an address, got none");
    *plan = nullptr;
    keel::check(request != nullptr, keel::ErrorKind::kUsage, "request: expected one, got none");
    const Request asked = read_request(*request);
    const bool is_cuda = request->device.kind == KEEL_DEVICE_CUDA;
    *plan = new keel_plan{is_cuda ? plan_on_cuda(asked) : plan_on_host(asked)};
  });
}

void keel_plan_free(keel_plan* plan) { delete plan; }

int32_t keel_plan_outputs(const keel_plan* plan) {
  return plan == nullptr ? 0 : int32_t(plan->plan->outputs().size());
}

keel_type keel_plan_output(const keel_plan* plan, int32_t place) {
  if (place < 0 || place >= keel_plan_outputs(plan)) return {KEEL_ABSENT, 0, nullptr};
  const keel::TensorType& type = plan->plan->outputs()[std::size_t(place)];
  return {int32_t(type.dtype), int32_t(type.shape.rank()), type.shape.sizes().data()};
}

int64_t keel_plan_workspace(const keel_plan* plan) {
  return plan == nullptr ? 0 : plan->plan->workspace();
}

int keel_plan_run(const keel_plan* plan, const void* const* inputs, void* const* outputs,
                  void* workspace, const keel_executor* executor) {
  return guarded([&] {
    keel::check(plan != nullptr, keel::ErrorKind::kUsage, "plan: expected one, got none");
    plan->plan->run({inputs, outputs, workspace}, executor);
  });
}

int keel_plan_run_strided(const keel_plan* plan, const keel_arrays* arrays, void* workspace,
                          const keel_executor* executor) {
  return guarded([&] {
    keel::check(plan != nullptr, keel::ErrorKind::kUsage, "plan: expected one, got none");
    keel::check(arrays != nullptr, keel::ErrorKind::kUsage, "arrays: expected them, got none");
    plan->plan->run({arrays->inputs, arrays->outputs, workspace, arrays}, executor);
  });
}

int32_t keel_plan_takes_strides(const keel_plan* plan, int32_t input, const int64_t* strides) {
  bool takes = false;
  guarded([&] { takes = plan != nullptr && plan->plan->takes_strides(input, strides); });
  return takes;
}
