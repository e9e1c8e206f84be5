#include "tests/ptx/names.h"

#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

constexpr std::int64_t kGap = 64;  // bytes between variables that nobody may touch

std::int64_t aligned(std::int64_t at, std::int64_t align) {
  return (at + align - 1) / align * align;
}

}  // namespace

Type type_of_register(const std::string& type, int line) {
  const std::int64_t bytes = bytes_of_type(type, line);
  if (bytes == 1) fail("line {}: a register of 8 bits", line);
  return Type(bytes);
}

void Names::open_function() {
  functions_.push_back(scopes_.size());
  open();
}

void Names::close_function() {
  scopes_.resize(functions_.back());
  functions_.pop_back();
}

std::optional<Symbol> Names::find(const std::string& name) {
  for (std::size_t i = scopes_.size(); i-- > functions_.back();) {
    if (const auto at = scopes_[i].find(name); at != scopes_[i].end()) return at->second;
  }
  if (const auto at = specials_.find(name); at != specials_.end()) return at->second;
  if (name.starts_with("%") && (name.find('.') != std::string::npos || name == "%laneid")) {
    const Symbol made{
        .is_register = true, .type = Type::kWord, .place = preset(Type::kWord, 0, name)};
    return specials_[name] = made;
  }
  if (const Variable* const variable = module_.shared(name)) return add_shared(*variable);
  if (std::byte* const memory = module_.global(name)) {
    return Symbol{.space = Space::kGlobal, .address = reinterpret_cast<std::int64_t>(memory)};
  }
  return std::nullopt;
}

std::uint32_t Names::add_register(Type type) {
  const std::uint32_t bytes =
      type == Type::kPredicate ? 64 : std::uint32_t(bytes_of(type)) * kLanes;
  const std::uint32_t place = code_.register_bytes;
  code_.register_bytes += bytes;  // a multiple of 64
  return place;
}

std::uint32_t Names::preset(Type type, std::uint64_t bits, const std::string& special) {
  const std::uint32_t place = add_register(type);
  code_.presets.push_back({place, type, bits, special});
  return place;
}

std::uint32_t Names::constant(Type type, std::uint64_t bits) {
  const auto [at, is_new] = constants_.try_emplace({type, bits});
  if (is_new) at->second = preset(type, bits, "");
  return at->second;
}

Symbol Names::add_local(const Variable& variable) {
  const std::int64_t at = aligned(code_.local_bytes, variable.align);
  code_.local_bytes = aligned(at + variable.bytes, 16);
  return {.space = Space::kLocal, .address = at};
}

// A module's variable counts for a kernel that names it.
Symbol Names::add_shared(const Variable& variable) {
  const auto [entry, is_new] = shared_.try_emplace(variable.name);
  if (!is_new) return entry->second;
  const std::int64_t at =
      aligned(code_.shared_bytes + kGap, std::max<std::int64_t>(variable.align, 16));
  code_.shared.push_back({variable.name, at, variable.bytes});
  code_.shared_bytes = at + variable.bytes;
  code_.static_shared = aligned(code_.static_shared, variable.align) + variable.bytes;
  return entry->second = {.space = Space::kShared, .address = at};
}

void Names::add_parameter(const Variable& variable) {
  const std::int64_t at = aligned(code_.parameter_bytes, variable.align);
  code_.parameters.push_back({variable.name, at, variable.bytes});
  code_.parameter_bytes = at + variable.bytes;
  set(variable.name, {.space = Space::kParam, .address = at});
}

}  // namespace keel::ptx
