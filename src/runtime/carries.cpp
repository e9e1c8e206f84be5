#include "src/runtime/carries.h"

#include <algorithm>
#include <set>

namespace keel {

const Carry::Form& Carry::form(Backend& backend, const Shape& shape) {
  const auto made = std::ranges::find(forms_, shape, [](const Form& f) { return f.type.shape; });
  if (made != forms_.end()) return *made;
  const TensorType type{backend.storage(declared_), shape};
  const bool fits = !forms_.empty() && type.bytes() <= forms_.back().memory->bytes();
  forms_.push_back({type, fits ? forms_.back().memory : backend.allocate(type.bytes())});
  return forms_.back();
}

void Carry::hold(const Form& form, const Tensor& value) {
  const Tensor stored = value.to(form.type.dtype);
  form.memory->upload(0, stored.data(), stored.bytes());
  held_ = &form;
}

std::int64_t Carry::bytes() const {
  std::set<const Memory*> blocks;
  for (const Form& form : forms_) blocks.insert(form.memory.get());
  std::int64_t bytes = 0;
  for (const Memory* block : blocks) bytes += block->bytes();
  return bytes;
}

Carries::Place Carries::place(const std::string& name, const TensorType& type) {
  Carry& carry = carries_.try_emplace(name, type.dtype).first->second;
  check(carry.declared() == type.dtype, ErrorKind::kUsage, "{}: expected a carry of {}, got {}",
        name, name_of(carry.declared()), type.text());
  return {&carry, &carry.form(backend_, type.shape)};
}

void Carries::clear() {
  for (auto& [name, carry] : carries_) carry.clear();
}

std::map<std::string, Tensor> Carries::read() const {
  std::map<std::string, Tensor> values;
  for (const auto& [name, carry] : carries_) {
    if (carry.held() == nullptr) continue;
    Tensor value(carry.held()->type);
    carry.held()->memory->download(0, value.data(), value.bytes());
    values.emplace(name, std::move(value));
  }
  return values;
}

void Carries::write(const std::map<std::string, Tensor>& values) {
  for (const auto& [name, value] : values) {
    const auto found = carries_.find(name);
    check(found != carries_.end(), ErrorKind::kBadInput, "no carry is called '{}'", name);
    const DType expected = found->second.declared();
    check(is_floating(expected) == is_floating(value.dtype()), ErrorKind::kBadInput,
          "{}: expected a carry of {}, got {}", name, name_of(expected), value.type().text());
  }
  clear();
  for (const auto& [name, value] : values) {
    Carry& carry = carries_.at(name);
    carry.hold(carry.form(backend_, value.shape()), value);
  }
}

std::int64_t Carries::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [name, carry] : carries_) bytes += carry.bytes();
  return bytes;
}

}  // namespace keel
