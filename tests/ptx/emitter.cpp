#include "tests/ptx/emitter.h"

#include <algorithm>

#include "tests/ptx/fault.h"

namespace keel::ptx {

const Form& form_of(std::string_view name, int line) {
  const Form* const form = find_form(name);
  if (!form) fail("line {}: the instruction '{}' is not known", line, name);
  return *form;
}

void Emitter::add_plain(const Form& form, const Statement& s) {
  Instruction made = start(form, s);
  place_operands(made, s);
  push(made);
}

Symbol Emitter::find(const std::string& name, int line) {
  const auto symbol = names_.find(name);
  if (!symbol) fail("line {}: the name {} is not known", line, name);
  return *symbol;
}

Symbol Emitter::find_register(const std::string& name, int line) {
  const Symbol symbol = find(name, line);
  if (!symbol.is_register) fail("line {}: {} is no register", line, name);
  return symbol;
}

Instruction Emitter::start(const Form& form, const Statement& s) {
  Instruction made;
  made.form = &form;
  made.run = form.run;
  made.flow = form.flow;
  made.access = form.access;
  made.line = s.line;
  std::copy(form.operands.begin(), form.operands.end(), made.type.begin());
  if (!s.guard.empty()) {
    const Symbol guard = find_register(s.guard, s.line);
    if (guard.type != Type::kPredicate) fail("line {}: {} is no predicate", s.line, s.guard);
    made.is_guarded = true;
    made.is_negated = s.is_negated;
    made.guard = guard.place;
  }
  return made;
}

// The lower part of a register that is wider than what an instruction takes.
std::uint32_t Emitter::narrowed(const Symbol& wide, Type wanted, const Statement& s) {
  const char* const name = wide.type == Type::kWord ? "(lower.b32)"
                           : wanted == Type::kWord  ? "(lower.b64)"
                                                    : "(lowest.b64)";
  Instruction made = start(form_of(name, s.line), s);
  made.is_guarded = false;
  made.place = {names_.add_register(wanted), wide.place};
  push(made);
  return made.place[0];
}

std::uint32_t Emitter::source(const Operand& operand, Type wanted, const Statement& s) {
  if (operand.kind == Operand::kNumber) {
    const int bits = 8 * bytes_of(wanted);
    if (bits == 0) return names_.constant(wanted, operand.bits ? ~std::uint64_t{0} : 0);
    const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    return names_.constant(wanted, operand.bits & mask);
  }
  if (operand.kind != Operand::kName) fail("line {}: an operand of {}", s.line, s.name);
  const Symbol symbol = find_register(operand.name, s.line);
  if (symbol.type == wanted) return symbol.place;
  const bool is_wider = bytes_of(symbol.type) > bytes_of(wanted) && wanted != Type::kPredicate;
  if (!is_wider) fail("line {}: {} is of another type than {} takes", s.line, operand.name, s.name);
  return narrowed(symbol, wanted, s);
}

std::uint32_t Emitter::result(const Operand& operand, Type wanted, const Statement& s) {
  const Symbol symbol = find_register(operand.name, s.line);
  if (symbol.type != wanted) {
    fail("line {}: {} is of another type than {} makes", s.line, operand.name, s.name);
  }
  return symbol.place;
}

// All operands in order; a pair of results counts as two, and its second may be left out.
void Emitter::place_operands(Instruction& made, const Statement& s) {
  const std::vector<Type>& types = made.form->operands;
  std::vector<Operand> operands = s.operands;
  if (made.form->results == 2 && !operands.empty()) {
    const Operand first = operands[0];
    if (first.kind == Operand::kPair) {
      operands[0] = first.parts[0];
      operands.insert(operands.begin() + 1, first.parts[1]);
    } else {
      made.place[1] = names_.add_register(types[1]);
      operands.insert(operands.begin() + 1, Operand{});
    }
  }
  if (operands.size() != types.size()) {
    fail("line {}: {} with {} operands", s.line, s.name, s.operands.size());
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (operands[i].kind == Operand::kName && operands[i].name.empty()) continue;
    made.place[i] = int(i) < made.form->results ? result(operands[i], types[i], s)
                                                : source(operands[i], types[i], s);
  }
}

// A mov of a value, of an address, or of the two halves of a register.
void Emitter::add_move(const Form& form, const Statement& s) {
  if (s.operands.size() != 2)
    fail("line {}: {} with {} operands", s.line, s.name, s.operands.size());
  const Operand &to = s.operands[0], &from = s.operands[1];
  if (to.kind == Operand::kVector || from.kind == Operand::kVector) return add_halves(form, s);
  Instruction made = start(form, s);
  made.place[0] = result(to, form.operands[0], s);
  const auto symbol = from.kind == Operand::kName ? names_.find(from.name) : std::nullopt;
  if (symbol && !symbol->is_register) {
    made.place[1] = names_.constant(form.operands[1], std::uint64_t(symbol->address));
  } else {
    made.place[1] = source(from, form.operands[1], s);
  }
  push(made);
}

void Emitter::add_halves(const Form& form, const Statement& s) {
  const bool is_wide = form.operands[0] == Type::kDouble;
  const Type half = is_wide ? Type::kWord : Type::kHalf;
  const std::string tail = is_wide ? ".b64)" : ".b32)";
  const Operand &to = s.operands[0], &from = s.operands[1];
  const Operand& vector = to.kind == Operand::kVector ? to : from;
  if (vector.parts.size() != 2) fail("line {}: {} of more than two parts", s.line, s.name);
  if (&vector == &from) {
    Instruction made = start(form_of("(join" + tail, s.line), s);
    made.place[0] = result(to, form.operands[0], s);
    for (const std::size_t i : {0, 1}) made.place[1 + i] = source(from.parts[i], half, s);
    return push(made);
  }
  const std::uint32_t whole = source(from, form.operands[0], s);
  for (const std::size_t i : {0, 1}) {
    if (to.parts[i].name == "_") continue;
    Instruction made = start(form_of((i == 0 ? "(lower" : "(upper") + tail, s.line), s);
    made.place = {result(to.parts[i], half, s), whole};
    push(made);
  }
}

void Emitter::add_access(const Form& form, const Statement& s) {
  Instruction made = start(form, s);
  const bool is_store = form.access.is_store;
  if (s.operands.size() != 2)
    fail("line {}: {} with {} operands", s.line, s.name, s.operands.size());
  const Operand &values = s.operands[is_store ? 1 : 0], &address = s.operands[is_store ? 0 : 1];
  place_address(made, address, is_store ? 0 : std::size_t(form.access.count), s);
  const std::vector<Operand> parts =
      values.kind == Operand::kVector ? values.parts : std::vector<Operand>{values};
  if (int(parts.size()) != form.access.count) fail("line {}: {} elements", s.line, parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t place = i + (is_store ? 1 : 0);
    if (parts[i].kind == Operand::kNumber) {
      made.place[place] = source(parts[i], made.type[place], s);
      continue;
    }
    if (!is_store && parts[i].name == "_") {  // an element that nobody wants
      made.place[place] = names_.add_register(made.type[place]);
      continue;
    }
    const Symbol symbol = find_register(parts[i].name, s.line);
    if (bytes_of(symbol.type) < bytes_of(made.type[place])) {
      fail("line {}: {} is narrower than what {} moves", s.line, parts[i].name, s.name);
    }
    made.place[place] = symbol.place;
    made.type[place] = symbol.type;
  }
  push(made);
}

void Emitter::add_prefetch(const Form& form, const Statement& s) {
  Instruction made = start(form, s);
  made.access.space = Space::kGlobal;
  place_address(made, s.operands.at(0), 0, s);
  push(made);
}

void Emitter::place_address(Instruction& made, const Operand& address, std::size_t place,
                            const Statement& s) {
  if (address.kind != Operand::kAddress) fail("line {}: {} without an address", s.line, s.name);
  const Symbol symbol = find(address.name, s.line);
  made.offset = std::int64_t(address.bits);
  if (symbol.is_register) {
    if (bytes_of(symbol.type) < 4) fail("line {}: {} as an address", s.line, address.name);
    made.place[place] = symbol.place;
    made.type[place] = symbol.type;
    return;
  }
  made.offset += symbol.address;
  made.place[place] = names_.constant(Type::kDouble, 0);
  made.type[place] = Type::kDouble;
  if (made.access.space == Space::kParam && symbol.space == Space::kLocal) {
    made.access.space = Space::kLocal;
  }
  if (made.access.space != symbol.space) fail("line {}: {} lies elsewhere", s.line, address.name);
}

}  // namespace keel::ptx
