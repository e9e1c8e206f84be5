#include "plugin/c/plan.h"

#include <algorithm>

#include "backends/onednn/norm_backend.h"
#include "backends/reference/backend.h"

namespace keel::plugin {
namespace {

const OpInfo& find_norm_op(std::string_view name) {
  for (const OpInfo* op : onednn::norm_ops()) {
    if (op->name == name) return *op;
  }
  fail(ErrorKind::kUsage, "no op is called '{}'; keel_norm_ops() lists them", name);
}

// Float64 arrays run on the reference, which stores every value that is declared f32 as f64.
Backend& backend_for(bool is_double) {
  static onednn::NormBackend fast;
  static reference::ReferenceBackend judge;
  return is_double ? static_cast<Backend&>(judge) : fast;
}

// The type that the graph declares for an input whose array has the type `given`.
TensorType declared(const OpInfo& op, int place, const TensorType& given, bool is_double) {
  if (!is_double || !input_types(op, place).contains(DType::kF32)) return given;
  check(given.dtype == DType::kF64, ErrorKind::kUsage, "[{}] {}: expected f64, as {} is, got {}",
        op.name, input_name(op, place), input_name(op, 0), name_of(given.dtype));
  return {DType::kF32, given.shape};
}

// The array at an address. Absent ones, and those without elements, have none.
TensorRef array(const TensorType& type, const void* address, const std::string& what) {
  if (type.bytes() == 0) return {nullptr, type};
  check(address != nullptr, ErrorKind::kUsage, "{}: expected an array {}, got no address", what,
        type.text());
  const auto unit = std::uintptr_t(size_of(type.dtype));
  check(reinterpret_cast<std::uintptr_t>(address) % unit == 0, ErrorKind::kUsage,
        "{}: expected an address that is a multiple of {} bytes", what, unit);
  return {const_cast<void*>(address), type};
}

}  // namespace

Plan::Plan(std::string_view op, std::string_view attributes,
           std::span<const std::optional<TensorType>> inputs)
    : op_(find_norm_op(op)), inputs_(inputs.begin(), inputs.end()) {
  check(inputs_.size() <= op_.inputs.size(), ErrorKind::kUsage,
        "[{}] expected at most {} inputs, got {}", op_.name, op_.inputs.size(), inputs_.size());
  const bool is_double = !inputs_.empty() && inputs_[0] && inputs_[0]->dtype == DType::kF64 &&
                         input_types(op_, 0).contains(DType::kF32);
  std::vector<Value> values(op_.inputs.size());
  for (int i = 0; i < int(inputs_.size()); ++i) {
    const std::optional<TensorType>& type = inputs_[std::size_t(i)];
    if (!type) continue;
    values[std::size_t(i)] = graph_.input(input_name(op_, i), declared(op_, i, *type, is_double));
  }
  Backend& backend = backend_for(is_double);
  const Node& node = graph_.node(graph_.add(op_, values, attrs_from_text(op_, attributes)));
  prepared_ = backend.prepare({graph_, node});
  check(prepared_.refusal.empty(), ErrorKind::kBackendMissing, "{}", prepared_.refusal);
  for (const TensorType& type : node.outputs) {
    outputs_.push_back({backend.storage(type.dtype), type.shape});
  }
}

void Plan::run(const void* const* inputs, void* const* outputs, void* workspace) const {
  Binding binding;
  binding.inputs.resize(op_.inputs.size());
  for (int i = 0; i < int(inputs_.size()); ++i) {
    const auto place = std::size_t(i);
    if (!inputs_[place]) continue;
    binding.inputs[place] =
        array(*inputs_[place], inputs[i], fmt::format("[{}] {}", op_.name, input_name(op_, i)));
  }
  for (std::size_t j = 0; j < outputs_.size(); ++j) {
    binding.outputs.push_back(
        array(outputs_[j], outputs[j], fmt::format("[{}] output {}", op_.name, j)));
  }
  check(workspace != nullptr || prepared_.workspace == 0, ErrorKind::kUsage,
        "[{}] expected a workspace of {} bytes, got none", op_.name, prepared_.workspace);
  check(reinterpret_cast<std::uintptr_t>(workspace) % kAlignment == 0, ErrorKind::kUsage,
        "[{}] workspace: expected an address that is a multiple of {} bytes", op_.name, kAlignment);
  binding.workspace = workspace;
  prepared_.bind(binding)();
}

}  // namespace keel::plugin
