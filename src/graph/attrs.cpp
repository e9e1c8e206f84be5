#include "src/graph/attrs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "src/core/dtype_set.h"
#include "src/core/nearest.h"

namespace keel {
namespace {

template <class T>
void parse_number(std::string_view text, T& value, std::string_view kind) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_beyond = error == std::errc::result_out_of_range;
  check(error == std::errc{} && end == text.data() + text.size(), ErrorKind::kUsage,
        "expected {}{}, got '{}'", kind, is_beyond ? " of at most 64 bits" : "", text);
}

// The numbers of a list such as "(2, 3)" or "[1,2]", between these brackets and after commas with
// or without a space; nothing if it is no such list.
std::optional<std::vector<std::int64_t>> list_of(std::string_view text, std::string_view brackets) {
  if (text.size() < 2 || text.front() != brackets[0] || text.back() != brackets[1]) return {};
  text = text.substr(1, text.size() - 2);
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    const auto [end, error] = std::from_chars(text.begin(), text.end(), numbers.emplace_back());
    if (error != std::errc{}) return {};
    text.remove_prefix(std::size_t(end - text.begin()));
    if (text.empty()) break;
    if (text.front() != ',') return {};
    text.remove_prefix(text.starts_with(", ") ? 2 : 1);
    if (text.empty()) return {};  // nothing follows the comma
  }
  return numbers;
}

// Where the value at the front of `text` ends: at a space outside of brackets.
std::size_t value_end(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ' ' && depth <= 0) return i;
  }
  return text.size();
}

void set_named(std::string_view name, std::string_view value,
               std::span<const std::string_view> names, const SetField& set) {
  bool is_known = false;
  try {
    is_known = set(name, value);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", name, error.what());
  }
  const std::vector<std::string> known(names.begin(), names.end());
  check(is_known, ErrorKind::kUsage, "attribute {}", unknown_name(name, known));
}

}  // namespace

std::string attr_text(bool value) { return value ? "true" : "false"; }
std::string attr_text(double value) { return fmt::format("{}", value); }
std::string attr_text(std::int64_t value) { return fmt::format("{}", value); }
std::string attr_text(DType value) { return std::string(name_of(value)); }
std::string attr_text(const std::string& value) { return value; }
std::string attr_text(const Shape& value) { return value.text(); }
std::string attr_text(const std::vector<std::int64_t>& value) {
  return fmt::format("[{}]", fmt::join(value, ","));
}

void attr_parse(std::string_view text, bool& value) {
  check(text == "true" || text == "false", ErrorKind::kUsage, "expected true or false, got '{}'",
        text);
  value = text == "true";
}
void attr_parse(std::string_view text, double& value) { parse_number(text, value, "a number"); }
void attr_parse(std::string_view text, std::int64_t& value) {
  parse_number(text, value, "a whole number");
}
void attr_parse(std::string_view text, DType& value) {
  const auto found = std::ranges::find(kAllDTypes, text, name_of);
  check(found != kAllDTypes.end(), ErrorKind::kUsage, "expected {}, got '{}'", kAnyType.text(),
        text);
  value = *found;
}
void attr_parse(std::string_view text, std::string& value) { value = text; }
void attr_parse(std::string_view text, Shape& value) {
  const auto sizes = list_of(text, "()");
  const bool is_shape = sizes && sizes->size() <= std::size_t(Shape::kMaxRank) &&
                        std::ranges::all_of(*sizes, [](std::int64_t size) { return size >= 0; });
  check(is_shape, ErrorKind::kUsage,
        "expected a shape such as (2, 3), of at most {} sizes, none below 0, got '{}'",
        Shape::kMaxRank, text);
  value = Shape(*sizes);
}
void attr_parse(std::string_view text, std::vector<std::int64_t>& value) {
  auto numbers = list_of(text, "[]");
  check(numbers.has_value(), ErrorKind::kUsage, "expected whole numbers such as [1,2], got '{}'",
        text);
  value = std::move(*numbers);
}

void set_fields(std::string_view text, std::span<const std::string_view> names,
                const SetField& set) {
  check(!names.empty() || text.empty(), ErrorKind::kUsage, "expected no attributes, got '{}'",
        text);
  std::vector<std::string_view> seen;
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    check(equals != text.npos, ErrorKind::kUsage, "attributes: expected NAME=VALUE, got '{}'",
          text);
    const std::string_view name = text.substr(0, equals);
    text.remove_prefix(equals + 1);
    // An only field has no other after it: its value may hold spaces.
    const std::size_t end = names.size() == 1 ? text.size() : value_end(text);
    check(std::ranges::count(seen, name) == 0, ErrorKind::kUsage,
          "{}: expected one value, got another, '{}'", name, text.substr(0, end));
    set_named(name, text.substr(0, end), names, set);
    seen.push_back(name);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace keel
