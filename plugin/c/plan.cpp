#include "plugin/c/plan.h"

#include <algorithm>

#include "plugin/c/sums.h"
#include "src/ops/norm/norm_ops.h"

namespace keel::plugin {
namespace {

// The type that the graph declares for an input whose array has the type `given`. A backend that
// stores every value declared f32 as f64 takes arrays of f64.
TensorType declared(const OpInfo& op, int place, const TensorType& given, const Backend& backend) {
  const DType stored = backend.storage(DType::kF32);
  const bool is_stored_otherwise = stored != DType::kF32;
  if (!is_stored_otherwise || !input_types(op, place).contains(DType::kF32)) return given;
  check(given.dtype == stored, ErrorKind::kUsage, "[{}] {}: expected {}, as {} is, got {}", op.name,
        input_name(op, place), name_of(stored), input_name(op, 0), name_of(given.dtype));
  return {DType::kF32, given.shape};
}

// Whether the result is rounded to bf16: it is stored as x and dy are.
bool is_narrow(const Request& request, const TensorType& result) {
  const auto is_bf16 = [](const std::optional<TensorType>& type) {
    return type && type->dtype == DType::kBF16;
  };
  return result.dtype == DType::kF32 && std::ranges::any_of(request.inputs, is_bf16);
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

const OpInfo& find_op(std::string_view name) {
  for (const OpInfo* op : norm_ops()) {
    if (op->name == name) return *op;
  }
  const SumOp* sum = find_sum_op(name);
  check(sum != nullptr, ErrorKind::kUsage, "no op is called '{}'; keel_norm_ops() lists them",
        name);
  return sum->info;
}

Plan::Plan(const Request& request, Backend& backend)
    : op_(find_op(request.op)), inputs_(request.inputs) {
  check(inputs_.size() <= op_.inputs.size(), ErrorKind::kUsage,
        "[{}] expected at most {} inputs, got {}", op_.name, op_.inputs.size(), inputs_.size());
  add_inputs(backend);
  add_op(request);
  prepare(backend);
  describe_arrays(backend);
}

void Plan::add_inputs(const Backend& backend) {
  given_.resize(op_.inputs.size());
  for (int i = 0; i < int(inputs_.size()); ++i) {
    const std::optional<TensorType>& type = inputs_[std::size_t(i)];
    if (!type) continue;
    given_[std::size_t(i)] = graph_.input(input_name(op_, i), declared(op_, i, *type, backend));
  }
}

void Plan::add_op(const Request& request) {
  const Attrs attrs = attrs_from_text(op_, request.attributes);
  if (const SumOp* sum = find_sum_op(op_.name)) {
    results_ = add_sum_op(graph_, *sum, given_, attrs);
    return;
  }
  const Value result = graph_.add(op_, given_, attrs);
  if (is_narrow(request, graph_.type(result))) graph_.narrow_result(result);
  for (int j = 0; j < int(graph_.node(result).outputs.size()); ++j) {
    results_.push_back(result.at(j));
  }
}

void Plan::prepare(Backend& backend) {
  prepared_.resize(std::size_t(graph_.size()));
  for (int i = 0; i < graph_.size(); ++i) {
    const Node& node = graph_.node(i);
    if (node.kind != NodeKind::kOp) continue;
    Prepared& kernel = prepared_[std::size_t(i)] = backend.prepare({graph_, node});
    check(kernel.refusal.empty(), ErrorKind::kBackendMissing, "{}", kernel.refusal);
    workspace_ = std::max(workspace_, kernel.workspace);  // a sum needs none
  }
  const std::vector<JoinedRows> joined = find_joined_rows(graph_, prepared_);
  if (!joined.empty()) joined_ = joined[0];
  const Prepared& norm = prepared_.back();
  if (!is_sum() && norm.bind_rows && norm.row <= kLongestRow) row_ = norm.row;
}

bool Plan::is_sum() const { return graph_.size() > 1 && prepared_[prepared_.size() - 2].bind; }

void Plan::describe_arrays(const Backend& backend) {
  for (const Value result : results_) {
    const TensorType& type = graph_.type(result);
    outputs_.push_back({backend.storage(type.dtype), type.shape});
    blank_.outputs.push_back({nullptr, outputs_.back()});
  }
  blank_.inputs.resize(op_.inputs.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i]) blank_.inputs[i].type = *inputs_[i];
  }
}

TensorRef Plan::array_of(Value value, const Binding& arrays) const {
  if (!value.valid()) return {};
  if (const auto at = std::ranges::find(given_, value); at != given_.end()) {
    return arrays.inputs[std::size_t(at - given_.begin())];
  }
  const auto at = std::ranges::find(results_, value);
  // The norm's dx, to which a sum is added in place, is no result.
  return arrays.outputs[at == results_.end() ? 0 : std::size_t(at - results_.begin())];
}

Binding Plan::binding_of(int index, const Binding& arrays) const {
  const Node& node = graph_.node(index);
  Binding binding;
  for (const Value input : node.inputs) binding.inputs.push_back(array_of(input, arrays));
  for (int port = 0; port < int(node.outputs.size()); ++port) {
    binding.outputs.push_back(array_of({index, port}, arrays));
  }
  binding.workspace = arrays.workspace;
  return binding;
}

void Plan::start(const Binding& arrays) const {
  // The places of a single node's arrays are those of the op.
  if (!is_sum()) return prepared_.back().bind(arrays)();
  const int first = graph_.size() - 2;
  std::vector<Binding> bindings{binding_of(first, arrays), binding_of(first + 1, arrays)};
  if (joined_) return join_rows(*joined_, prepared_, bindings)();
  for (int i = 0; i < 2; ++i) prepared_[std::size_t(first + i)].bind(bindings[std::size_t(i)])();
}

Binding Plan::bound(const Arrays& arrays) const {
  check(arrays.inputs != nullptr || inputs_.empty(), ErrorKind::kUsage,
        "[{}] inputs: expected {} addresses, got no table", op_.name, inputs_.size());
  check(arrays.outputs != nullptr, ErrorKind::kUsage,
        "[{}] outputs: expected {} addresses, got no table", op_.name, outputs_.size());
  Binding binding = blank_;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i]) continue;
    set_address(binding.inputs[i], arrays.inputs[i], [&] { return input_text(i); });
  }
  for (std::size_t j = 0; j < outputs_.size(); ++j) {
    set_address(binding.outputs[j], arrays.outputs[j], [&] { return output_text(j); });
  }
  check(arrays.workspace != nullptr || workspace() == 0, ErrorKind::kUsage,
        "[{}] expected a workspace of {} bytes, got none", op_.name, workspace());
  check(reinterpret_cast<std::uintptr_t>(arrays.workspace) % kAlignment == 0, ErrorKind::kUsage,
        "{}: expected an address that is a multiple of {} bytes", workspace_text(), kAlignment);
  binding.workspace = arrays.workspace;
  return binding;
}

std::string Plan::input_text(std::size_t place) const {
  return fmt::format("[{}] {}", op_.name, input_name(op_, int(place)));
}

std::string Plan::output_text(std::size_t place) const {
  return fmt::format("[{}] output {}", op_.name, place);
}

std::string Plan::workspace_text() const { return fmt::format("[{}] workspace", op_.name); }

}  // namespace keel::plugin
