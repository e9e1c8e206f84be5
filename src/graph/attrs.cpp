#include "src/graph/attrs.h"

#include <fmt/ranges.h>

#include <charconv>

namespace keel {
namespace {

template <class T>
void parse_number(std::string_view text, T& value, std::string_view kind) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_beyond = error == std::errc::result_out_of_range;
  check(error == std::errc{} && end == text.data() + text.size(), ErrorKind::kUsage,
        "expected {}{}, got '{}'", kind, is_beyond ? " of at most 64 bits" : "", text);
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
  check(text == "true" || text == "false" || text == "1" || text == "0", ErrorKind::kUsage,
        "expected true or false, got '{}'", text);
  value = text == "true" || text == "1";
}
void attr_parse(std::string_view text, double& value) { parse_number(text, value, "a number"); }
void attr_parse(std::string_view text, std::int64_t& value) {
  parse_number(text, value, "a whole number");
}
void attr_parse(std::string_view text, std::string& value) { value = text; }

}  // namespace keel
