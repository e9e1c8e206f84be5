// Prints element-wise programs as text, and reads them from text.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "src/ops/elementwise.h"

namespace keel {
namespace {

// Text that is taken apart from its front.
class Reader {
 public:
  explicit Reader(std::string_view text) : all_(text), rest_(text) {}

  bool is_at_end() const { return rest_.empty(); }
  bool accept(std::string_view word) {
    const bool is_next = rest_.starts_with(word);
    if (is_next) rest_.remove_prefix(word.size());
    return is_next;
  }
  void take(std::string_view word) { expect(accept(word)); }
  // The text up to `end`, which is taken too.
  std::string_view take_until(char end) {
    const std::size_t size = rest_.find(end);
    expect(size != rest_.npos);
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size + 1);
    return taken;
  }
  // The number of a register, "r3".
  int take_register() {
    take("r");
    int number = 0;
    const auto [end, error] = std::from_chars(rest_.begin(), rest_.end(), number);
    expect(error == std::errc{} && number >= 0 && number < kMostRegisters);
    rest_.remove_prefix(std::size_t(end - rest_.begin()));
    return number;
  }
  void expect(bool holds) const {
    check(holds, ErrorKind::kUsage,
          "expected steps such as r2=add(r0,r1), each of the registers before it, got '{}'", all_);
  }

 private:
  static constexpr int kMostRegisters = 1 << 14;  // EwStep numbers them in 16 bits
  std::string_view all_, rest_;
};

EwCode take_code(Reader& reader) {
  const std::string_view name = reader.take_until('(');
  for (int code = 0; code < kEwCount; ++code) {
    if (elementwise_op(static_cast<EwCode>(code)).name == name) return static_cast<EwCode>(code);
  }
  reader.expect(false);
  return {};
}

// "add(r0,r1)", which writes register `result`.
EwStep take_step(Reader& reader, int result) {
  EwStep step{.code = take_code(reader), .scale = {}};
  for (int i = 0; i < arity(step.code); ++i) {
    if (i > 0) reader.take(",");
    const int source = reader.take_register();
    reader.expect(source < result);
    step.source[std::size_t(i)] = static_cast<std::int16_t>(source);
  }
  if (step.code != EwCode::kScale) {
    reader.take(")");
    return step;
  }
  reader.take(",");
  set_fields(step.scale, reader.take_until(')'));
  return step;
}

}  // namespace

std::string attr_text(const EwProgram& program) {
  std::vector<std::string> steps;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const EwStep& step = program.steps[i];
    std::vector<std::string> sources;
    for (int s = 0; s < arity(step.code); ++s) {
      sources.push_back(fmt::format("r{}", step.source[static_cast<std::size_t>(s)]));
    }
    if (step.code == EwCode::kScale) sources.push_back(fields_text(step.scale));
    steps.push_back(fmt::format("r{}={}({})", program.inputs + int(i),
                                elementwise_op(step.code).name, fmt::join(sources, ",")));
  }
  return fmt::format("{}", fmt::join(steps, " "));
}

void attr_parse(std::string_view text, EwProgram& program) {
  Reader reader(text);
  program = {};
  while (!reader.is_at_end()) {
    if (!program.steps.empty()) reader.take(" ");
    const int result = reader.take_register();
    if (program.steps.empty()) program.inputs = result;
    reader.expect(result == program.inputs + int(program.steps.size()));
    reader.take("=");
    program.steps.push_back(take_step(reader, result));
  }
}

}  // namespace keel
