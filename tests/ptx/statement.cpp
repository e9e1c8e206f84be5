#include "tests/ptx/statement.h"

#include <cctype>

#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

bool is_number(std::string_view text) {
  return std::isdigit(static_cast<unsigned char>(text.front())) != 0;
}

class BodyReader {
 public:
  explicit BodyReader(std::span<const Token> body) : reader_(body) {}

  std::vector<Statement> run() {
    while (!reader_.is_done()) read();
    return std::move(made_);
  }

 private:
  Statement& add(Statement::Kind kind) {
    made_.emplace_back();
    made_.back().kind = kind;
    made_.back().line = reader_.peek().line;
    return made_.back();
  }

  void read() {
    if (reader_.take(";")) return;
    if (reader_.sees("{") || reader_.sees("}")) {
      add(reader_.sees("{") ? Statement::kOpen : Statement::kClose);
      reader_.next();
    } else if (reader_.take(".pragma")) {  // advice to ptxas
      reader_.next();
      reader_.expect(";");
    } else if (reader_.sees(".reg")) {
      read_registers();
    } else if (reader_.sees(".local") || reader_.sees(".shared") || reader_.sees(".param")) {
      Statement& made = add(Statement::kVariable);
      made.name = reader_.next().text;
      made.variable = reader_.variable();
      reader_.expect(";");
    } else {
      read_instruction();
    }
  }

  void read_registers() {
    Statement& first = add(Statement::kRegisters);
    reader_.expect(".reg");
    const std::string type(reader_.next().text);
    first.name = type;
    while (true) {
      Statement& made = made_.back();
      made.prefix = reader_.next().text;
      if (reader_.take("<")) {
        made.count = int(reader_.integer());
        reader_.expect(">");
      }
      if (!reader_.take(",")) break;
      add(Statement::kRegisters).name = type;
    }
    reader_.expect(";");
  }

  void read_instruction() {
    Statement made;
    made.line = reader_.peek().line;
    if (reader_.take("@")) {
      made.is_negated = reader_.take("!");
      made.guard = reader_.next().text;
    }
    made.name = reader_.next().text;
    if (made.guard.empty() && reader_.take(":")) {
      made.kind = Statement::kLabel;
    } else {
      while (!reader_.take(";")) {
        made.operands.push_back(operand());
        if (!reader_.sees(";")) reader_.expect(",");
      }
    }
    made_.push_back(std::move(made));
  }

  Operand operand() {
    if (reader_.take("[")) return address();
    if (reader_.take("{")) return list(Operand::kVector, "}");
    if (reader_.take("(")) return list(Operand::kArguments, ")");
    Operand made = plain();
    if (!reader_.take("|")) return made;
    Operand pair;
    pair.kind = Operand::kPair;
    pair.parts = {std::move(made), plain()};
    return pair;
  }

  Operand plain() {
    Operand made;
    if (reader_.sees("-") || is_number(reader_.peek().text)) {
      made.kind = Operand::kNumber;
      made.bits = std::uint64_t(reader_.integer());
    } else {
      made.name = reader_.next().text;
      if (!is_word(made.name.front())) fail("line {}: '{}' as an operand", line(), made.name);
    }
    return made;
  }

  Operand address() {
    Operand made = plain();
    if (made.kind == Operand::kNumber) fail("line {}: an address without a name", line());
    made.kind = Operand::kAddress;
    if (reader_.take("+")) made.bits = std::uint64_t(reader_.integer());
    reader_.expect("]");
    return made;
  }

  Operand list(Operand::Kind kind, std::string_view end) {
    Operand made;
    made.kind = kind;
    while (!reader_.take(end)) {
      made.parts.push_back(plain());
      reader_.take(",");
    }
    return made;
  }

  int line() const { return reader_.is_done() ? 0 : reader_.peek().line; }

  Reader reader_;
  std::vector<Statement> made_;
};

}  // namespace

std::vector<Statement> statements_of(std::span<const Token> body) { return BodyReader(body).run(); }

}  // namespace keel::ptx
