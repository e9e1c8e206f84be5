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

// Says why no array of the type can lie at an address.
void refuse_address(const TensorType& type, const void* address, const std::string& what) {
  check(address != nullptr, ErrorKind::kUsage, "{}: expected an array {}, got no address", what,
        type.text());
  fail(ErrorKind::kUsage, "{}: expected an address that is a multiple of {} bytes", what,
       size_of(type.dtype));
}

// Gives `to` the address of its array; absent ones, and those without elements, have none. what()
// names the array.
template <class What>
void set_address(TensorRef& to, const void* address, const What& what) {
  if (to.type.bytes() == 0) return;
  const bool fits = reinterpret_cast<std::uintptr_t>(address) % size_of(to.type.dtype) == 0;
  if (address == nullptr || !fits) refuse_address(to.type, address, what());
  to.data = const_cast<void*>(address);
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
    blank_.outputs.push_back({nullptr, outputs_.back()});
  }
  blank_.inputs.resize(op_.inputs.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i]) blank_.inputs[i].type = *inputs_[i];
  }
}

void Plan::run(const void* const* inputs, void* const* outputs, void* workspace) const {
  Binding binding = blank_;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i]) continue;
    set_address(binding.inputs[i], inputs[i],
                [&] { return fmt::format("[{}] {}", op_.name, input_name(op_, int(i))); });
  }
  for (std::size_t j = 0; j < outputs_.size(); ++j) {
    set_address(binding.outputs[j], outputs[j],
                [&] { return fmt::format("[{}] output {}", op_.name, j); });
  }
  check(workspace != nullptr || prepared_.workspace == 0, ErrorKind::kUsage,
        "[{}] expected a workspace of {} bytes, got none", op_.name, prepared_.workspace);
  check(reinterpret_cast<std::uintptr_t>(workspace) % kAlignment == 0, ErrorKind::kUsage,
        "[{}] workspace: expected an address that is a multiple of {} bytes", op_.name, kAlignment);
  binding.workspace = workspace;
  prepared_.bind(binding)();
}

}  // namespace keel::plugin
