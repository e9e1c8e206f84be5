#include "src/graph/option.h"

#include <cmath>

namespace keel {

bool Range::holds(double value) const {
  const bool is_low = above ? value <= least : value < least;
  const bool is_high = below ? value >= most : value > most;
  return std::isfinite(value) && !is_low && !is_high;
}

std::string Range::text() const {
  if (!words.empty()) return std::string(words);
  const Range all;
  const bool has_least = least != all.least, has_most = most != all.most;
  if (!has_least && !has_most) return "";
  if (!has_most) return fmt::format("{} {}", above ? ">" : ">=", least);
  if (!has_least) return fmt::format("{} {}", below ? "<" : "<=", most);
  if (!above && !below) return fmt::format("{:.15g} to {:.15g}", least, most);
  return fmt::format("in {}{}, {}{}", above ? '(' : '[', least, most, below ? ')' : ']');
}

void check_range(std::string_view name, const Range& range, double value, const std::string& text) {
  const std::string asked = range.text();
  const bool is_beyond = std::isfinite(value) && std::abs(value) > Range{}.most;
  const std::string expected = asked.empty() ? "a number that float32 holds"
                               : is_beyond && range.most == Range{}.most ? asked + " within float32"
                                                                         : asked;
  check(range.holds(value), ErrorKind::kUsage, "{}: expected {}, got {}", name, expected, text);
  const bool vanishes = value != 0 && float(value) == 0;
  check(!vanishes, ErrorKind::kUsage, "{}: expected {}{}, got {}, which is 0 in float32", name,
        expected, asked.empty() ? "" : " within float32", text);
}

}  // namespace keel
