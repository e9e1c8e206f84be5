#include "src/runtime/variables.h"

namespace keel {
namespace {

void expect_within(const Bounds& bounds, const std::string& name, const Tensor& value) {
  for (std::int64_t i = 0; i < value.elements(); ++i) {
    const double element = value.at(i);
    check(element >= bounds.least && element <= bounds.most, ErrorKind::kBadInput,
          "{}: expected elements from {} to {}, got {}", name, bounds.least, bounds.most, element);
  }
}

}  // namespace

void Variables::declare(const Graph& graph) {
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind != NodeKind::kParameter && node.kind != NodeKind::kState) continue;
    const TensorType& type = node.outputs[0];
    if (const auto found = variables_.find(node.name); found != variables_.end()) {
      check(found->second.type == type, ErrorKind::kUsage, "{}: expected {}, got {}", node.name,
            found->second.type.text(), type.text());
      continue;
    }
    const TensorType stored{backend_.storage(type.dtype), type.shape};
    variables_[node.name] = {node.kind, type, backend_.allocate(stored.bytes()), node.bounds,
                             node.is_cached};
    Tensor value(type);
    if (node.initializer) node.initializer(value, Philox(seed_, stream_of(node.name)));
    store(variables_[node.name], value);
  }
}

const Variable& Variables::at(const std::string& name) const {
  const auto found = variables_.find(name);
  check(found != variables_.end(), ErrorKind::kUsage, "no parameter or state is called '{}'", name);
  return found->second;
}

Tensor Variables::read(const std::string& name, bool stored) const {
  const Variable& variable = at(name);
  Tensor value(backend_.storage(variable.type.dtype), variable.type.shape);
  variable.memory->download(0, value.data(), value.bytes());
  return stored || value.dtype() == variable.type.dtype ? std::move(value)
                                                        : value.to(variable.type.dtype);
}

void Variables::expect_fits(const std::string& name, const Tensor& value) const {
  const Variable& variable = at(name);
  check(value.shape() == variable.type.shape, ErrorKind::kBadInput, "{}: expected {}, got {}", name,
        variable.type.shape.text(), value.shape().text());
  check(is_floating(variable.type.dtype) || !is_floating(value.dtype()), ErrorKind::kBadInput,
        "{}: expected whole numbers, got {}", name, value.type().text());
  if (variable.bounds) expect_within(*variable.bounds, name, value);
}

void Variables::write(const std::string& name, const Tensor& value) {
  expect_fits(name, value);
  store(at(name), value);
}

void Variables::store(const Variable& variable, const Tensor& value) {
  const Tensor stored = value.to(backend_.storage(variable.type.dtype));
  variable.memory->upload(0, stored.data(), stored.bytes());
}

}  // namespace keel
