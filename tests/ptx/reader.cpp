#include "tests/ptx/reader.h"

#include <array>
#include <charconv>
#include <cstring>

#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

std::uint64_t number(std::string_view text, int base, int line) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail("line {}: '{}' is no number", line, text);
  }
  return value;
}

}  // namespace

std::uint64_t literal(std::string_view text, int line) {
  const auto starts = [&](char second) {
    return text.size() > 2 && text[0] == '0' && (text[1] | 32) == second;
  };
  if (starts('f') || starts('d') || starts('x')) return number(text.substr(2), 16, line);
  if (text.size() > 1 && text.ends_with('U')) text.remove_suffix(1);
  return number(text, text.size() > 1 && text[0] == '0' ? 8 : 10, line);
}

std::int64_t bytes_of_type(std::string_view type, int line) {
  struct Row {
    std::string_view name;
    std::int64_t bytes;
  };
  constexpr std::array kRows = {Row{".b8", 1},  Row{".u8", 1},  Row{".s8", 1},  Row{".b16", 2},
                                Row{".u16", 2}, Row{".s16", 2}, Row{".b32", 4}, Row{".u32", 4},
                                Row{".s32", 4}, Row{".f32", 4}, Row{".b64", 8}, Row{".u64", 8},
                                Row{".s64", 8}, Row{".f64", 8}, Row{".pred", 0}};
  for (const Row& row : kRows) {
    if (row.name == type) return row.bytes;
  }
  fail("line {}: the type {} is not known", line, type);
}

const Token& Reader::peek() const {
  if (is_done()) fail("PTX ends too early");
  return tokens_[at_];
}

const Token& Reader::next() {
  const Token& token = peek();
  ++at_;
  return token;
}

bool Reader::take(std::string_view text) {
  if (!sees(text)) return false;
  ++at_;
  return true;
}

void Reader::expect(std::string_view text) {
  if (!take(text)) refuse(fmt::format("where '{}' should be", text));
}

void Reader::refuse(std::string_view what) const {
  const Token& token = peek();
  fail("line {}: '{}' {}", token.line, token.text, what);
}

std::int64_t Reader::integer() {
  const bool is_negative = take("-");
  const Token& token = next();
  const auto value = static_cast<std::int64_t>(literal(token.text, token.line));
  return is_negative ? -value : value;
}

Variable Reader::variable() {
  Variable made;
  if (take(".align")) made.align = integer();
  const Token& type = next();
  const std::int64_t element = bytes_of_type(type.text, type.line);
  made.align = std::max(made.align, element);
  made.name = next().text;
  made.bytes = element;
  if (take("[")) {
    made.bytes = element * integer();
    expect("]");
  }
  if (!take("=")) return made;
  expect("{");
  do {
    const std::int64_t value = integer();
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    made.initial.insert(made.initial.end(), bytes, bytes + element);
  } while (take(","));
  expect("}");
  if (std::int64_t(made.initial.size()) > made.bytes) refuse("comes after too many values");
  return made;
}

std::span<const Token> Reader::braced() {
  const std::size_t first = at_;
  for (int depth = 1; depth > 0;) {
    const Token& token = next();
    depth += token.is("{") ? 1 : token.is("}") ? -1 : 0;
  }
  return tokens_.subspan(first, at_ - 1 - first);
}

}  // namespace keel::ptx
