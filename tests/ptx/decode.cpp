#include "tests/ptx/decode.h"

#include <algorithm>

#include "tests/ptx/fault.h"
#include "tests/ptx/names.h"
#include "tests/ptx/statement.h"

namespace keel::ptx {
namespace {

constexpr int kMostCalls = 8;  // one within the other

const Form& form_of(std::string_view name, int line) {
  const Form* const form = find_form(name);
  if (!form) fail("line {}: the instruction '{}' is not known", line, name);
  return *form;
}

class Decoder {
 public:
  Decoder(const Module& module, Code& code) : module_(module), code_(code), names_(module, code) {}

  void run(const Function& kernel) {
    names_.open_function();
    for (const Variable& parameter : kernel.parameters) names_.add_parameter(parameter);
    add_body(kernel, true);
    names_.close_function();
  }

 private:
  // The branches of one function, and where its labels are.
  struct Labels {
    std::map<std::string, int> places;
    std::vector<std::pair<std::size_t, std::string>> branches;
  };

  int end() const { return int(code_.instructions.size()); }

  void add_body(const Function& function, bool is_kernel) {
    Labels labels;
    std::swap(labels, labels_);
    is_kernel_ = is_kernel;
    for (const Statement& statement : statements_of(function.body)) add(statement);
    labels_.places["(end)"] = end();
    for (const auto& [place, name] : labels_.branches) {
      const auto at = labels_.places.find(name);
      Instruction& branch = code_.instructions[place];
      if (at == labels_.places.end()) fail("line {}: there is no label {}", branch.line, name);
      branch.target = at->second;
    }
    std::swap(labels, labels_);
  }

  void add(const Statement& s) {
    switch (s.kind) {
      case Statement::kOpen:
        return names_.open();
      case Statement::kClose:
        return names_.close();
      case Statement::kLabel:
        labels_.places[s.name] = end();
        return;
      case Statement::kRegisters:
        return add_registers(s);
      case Statement::kVariable:
        return add_variable(s);
      case Statement::kInstruction:
        return add_instruction(s);
    }
  }

  void add_registers(const Statement& s) {
    const Type type = type_of_register(s.name, s.line);
    const auto put = [&](const std::string& name) {
      names_.set(name, {.is_register = true, .type = type, .place = names_.add_register(type)});
    };
    if (s.count == 0) put(s.prefix);
    for (int i = 0; i < s.count; ++i) put(s.prefix + std::to_string(i));
  }

  // Parameters of a call lie in local memory: each thread has its own.
  void add_variable(const Statement& s) {
    names_.set(s.variable.name,
               s.name == ".shared" ? names_.add_shared(s.variable) : names_.add_local(s.variable));
  }

  Symbol find(const std::string& name, int line) {
    const auto symbol = names_.find(name);
    if (!symbol) fail("line {}: the name {} is not known", line, name);
    return *symbol;
  }

  Symbol find_register(const std::string& name, int line) {
    const Symbol symbol = find(name, line);
    if (!symbol.is_register) fail("line {}: {} is no register", line, name);
    return symbol;
  }

  Instruction start(const Form& form, const Statement& s) {
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

  void push(const Instruction& made) { code_.instructions.push_back(made); }

  // The lower part of a register that is wider than what an instruction takes.
  std::uint32_t narrowed(const Symbol& wide, Type wanted, const Statement& s) {
    const char* const name = wide.type == Type::kWord ? "(lower.b32)"
                             : wanted == Type::kWord  ? "(lower.b64)"
                                                      : "(lowest.b64)";
    Instruction made = start(form_of(name, s.line), s);
    made.is_guarded = false;
    made.place = {names_.add_register(wanted), wide.place};
    push(made);
    return made.place[0];
  }

  std::uint32_t source(const Operand& operand, Type wanted, const Statement& s) {
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
    if (!is_wider)
      fail("line {}: {} is of another type than {} takes", s.line, operand.name, s.name);
    return narrowed(symbol, wanted, s);
  }

  std::uint32_t result(const Operand& operand, Type wanted, const Statement& s) {
    const Symbol symbol = find_register(operand.name, s.line);
    if (symbol.type != wanted) {
      fail("line {}: {} is of another type than {} makes", s.line, operand.name, s.name);
    }
    return symbol.place;
  }

  void add_instruction(const Statement& s) {
    const Form& form = form_of(s.name, s.line);
    switch (form.flow) {
      case Flow::kNothing:
        return;
      case Flow::kBranch:
        return add_branch(form, s, s.operands.at(0).name);
      case Flow::kExit:
        return is_kernel_ ? push(start(form, s)) : add_branch(form_of("bra", s.line), s, "(end)");
      case Flow::kCall:
        return add_call(s);
      case Flow::kBarrier:
        return add_barrier(form, s);
      case Flow::kAddress:
        return add_move(form, s);
      default:
        break;
    }
    if (form.access.space != Space::kNone) return add_access(form, s);
    Instruction made = start(form, s);
    place_operands(made, s);
    push(made);
  }

  void add_branch(const Form& form, const Statement& s, const std::string& label) {
    labels_.branches.emplace_back(code_.instructions.size(), label);
    push(start(form, s));
  }

  // All operands in order; a pair of results counts as two, and its second may be left out.
  void place_operands(Instruction& made, const Statement& s) {
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

  void add_barrier(const Form& form, const Statement& s) {
    Instruction made = start(form, s);
    made.offset = std::int64_t(s.operands.size());
    if (made.offset < 1 || made.offset > 2) fail("line {}: a barrier without its number", s.line);
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      made.place[i] = source(s.operands[i], Type::kWord, s);
    }
    push(made);
  }

  // A mov of a value, of an address, or of the two halves of a register.
  void add_move(const Form& form, const Statement& s) {
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

  void add_halves(const Form& form, const Statement& s) {
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

  void add_access(const Form& form, const Statement& s) {
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

  void place_address(Instruction& made, const Operand& address, std::size_t place,
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

  // A call is replaced by the function's body, whose parameters are the caller's variables.
  void add_call(const Statement& s) {
    const bool has_results = s.operands.at(0).kind == Operand::kArguments;
    const std::string& name = s.operands.at(has_results ? 1 : 0).name;
    const Function* const called = module_.function(name);
    if (!called || called->body.empty()) fail("line {}: there is no function {}", s.line, name);
    if (!s.guard.empty()) fail("line {}: a call behind a predicate", s.line);
    if (++calls_ > kMostCalls) fail("line {}: {} calls itself", s.line, name);
    const std::vector<Operand> none;
    const std::vector<Operand>& results = has_results ? s.operands[0].parts : none;
    const std::size_t place = has_results ? 2 : 1;
    const std::vector<Operand>& arguments =
        s.operands.size() > place ? s.operands[place].parts : none;
    std::map<std::string, Symbol> bound;
    bind(called->results, results, bound, s);
    bind(called->parameters, arguments, bound, s);
    const bool was_kernel = is_kernel_;
    names_.open_function();
    for (const auto& [key, symbol] : bound) names_.set(key, symbol);
    add_body(*called, false);
    names_.close_function();
    is_kernel_ = was_kernel;
    --calls_;
  }

  void bind(const std::vector<Variable>& wanted, const std::vector<Operand>& given,
            std::map<std::string, Symbol>& bound, const Statement& s) {
    if (wanted.size() != given.size()) fail("line {}: a call with {} values", s.line, given.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      bound[wanted[i].name] = find(given[i].name, s.line);
    }
  }

  const Module& module_;
  Code& code_;
  Names names_;
  Labels labels_;
  bool is_kernel_ = true;
  int calls_ = 0;
};

}  // namespace

Code decode(const Module& module, const std::string& kernel) {
  const Function* const function = module.function(kernel);
  if (!function || !function->is_entry) fail("there is no kernel {}", kernel);
  Code code;
  code.name = kernel;
  code.most_threads = function->most_threads;
  Decoder(module, code).run(*function);
  return code;
}

}  // namespace keel::ptx
