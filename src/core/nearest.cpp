#include "src/core/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace keel {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  if (candidates.empty()) return "";
  return *std::ranges::min_element(
      candidates, {}, [&](const std::string& candidate) { return edit_distance(name, candidate); });
}

std::string unknown_name(std::string_view name, std::span<const std::string> candidates) {
  const std::string close = nearest(name, candidates);
  if (close.empty()) return fmt::format("'{}' is unknown", name);
  return fmt::format("'{}' is unknown; nearest: '{}'", name, close);
}

}  // namespace keel
