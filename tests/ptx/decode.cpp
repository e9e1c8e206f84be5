#include "tests/ptx/decode.h"

#include "tests/ptx/emitter.h"
#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

constexpr int kMostCalls = 8;  // one within the other

class Decoder {
 public:
  Decoder(const Module& module, Code& code)
      : module_(module), code_(code), emitter_(module, code) {}

  void run(const Function& kernel) {
    emitter_.names().open_function();
    for (const Variable& parameter : kernel.parameters) emitter_.names().add_parameter(parameter);
    add_body(kernel, true);
    emitter_.names().close_function();
  }

 private:
  // The branches of one function, and where its labels are.
  struct Labels {
    std::map<std::string, int> places;
    std::vector<std::pair<std::size_t, std::string>> branches;
  };

  void add_body(const Function& function, bool is_kernel) {
    Labels labels;
    std::swap(labels, labels_);
    is_kernel_ = is_kernel;
    for (const Statement& statement : statements_of(function.body)) add(statement);
    labels_.places["(end)"] = emitter_.end();
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
        return emitter_.names().open();
      case Statement::kClose:
        return emitter_.names().close();
      case Statement::kLabel:
        labels_.places[s.name] = emitter_.end();
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
      emitter_.names().set(
          name, {.is_register = true, .type = type, .place = emitter_.names().add_register(type)});
    };
    if (s.count == 0) put(s.prefix);
    for (int i = 0; i < s.count; ++i) put(s.prefix + std::to_string(i));
  }

  // Parameters of a call lie in local memory: each thread has its own.
  void add_variable(const Statement& s) {
    emitter_.names().set(s.variable.name, s.name == ".shared"
                                              ? emitter_.names().add_shared(s.variable)
                                              : emitter_.names().add_local(s.variable));
  }

  void add_instruction(const Statement& s) {
    const Form& form = form_of(s.name, s.line);
    switch (form.flow) {
      case Flow::kPrefetch:
        return emitter_.add_prefetch(form, s);
      case Flow::kBranch:
        return add_branch(form, s, s.operands.at(0).name);
      case Flow::kExit:
        return is_kernel_ ? emitter_.push(emitter_.start(form, s))
                          : add_branch(form_of("bra", s.line), s, "(end)");
      case Flow::kCall:
        return add_call(s);
      case Flow::kBarrier:
        return add_barrier(form, s);
      case Flow::kAddress:
        return emitter_.add_move(form, s);
      default:
        break;
    }
    if (form.access.space != Space::kNone) return emitter_.add_access(form, s);
    emitter_.add_plain(form, s);
  }

  void add_branch(const Form& form, const Statement& s, const std::string& label) {
    labels_.branches.emplace_back(code_.instructions.size(), label);
    emitter_.push(emitter_.start(form, s));
  }

  void add_barrier(const Form& form, const Statement& s) {
    Instruction made = emitter_.start(form, s);
    made.offset = std::int64_t(s.operands.size());
    if (made.offset < 1 || made.offset > 2) fail("line {}: a barrier without its number", s.line);
    for (std::size_t i = 0; i < s.operands.size(); ++i) {
      made.place[i] = emitter_.source(s.operands[i], Type::kWord, s);
    }
    emitter_.push(made);
  }

  // A call is replaced by the function's body, whose parameters are the caller's variables.
  void add_call(const Statement& s) {
    const bool has_results = s.operands.at(0).kind == Operand::kArguments;
    const std::string& name = s.operands.at(has_results ? 1 : 0).name;
    const Function* const called = module_.function(name);
    if (!called || called->body.empty()) fail("line {}: there is no function {}", s.line, name);
    if (!s.guard.empty()) fail("line {}: a call under a predicate", s.line);
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
    emitter_.names().open_function();
    for (const auto& [key, symbol] : bound) emitter_.names().set(key, symbol);
    add_body(*called, false);
    emitter_.names().close_function();
    is_kernel_ = was_kernel;
    --calls_;
  }

  void bind(const std::vector<Variable>& wanted, const std::vector<Operand>& given,
            std::map<std::string, Symbol>& bound, const Statement& s) {
    if (wanted.size() != given.size()) fail("line {}: a call with {} values", s.line, given.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      bound[wanted[i].name] = emitter_.find(given[i].name, s.line);
    }
  }

  const Module& module_;
  Code& code_;
  Emitter emitter_;
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
