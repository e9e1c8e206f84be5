#include "frontend/io/near_miss.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "frontend/io/visible_files.h"

namespace keel::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostShown = 5;

std::string in_small_letters(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

std::string near_misses(const fs::path& folder, std::initializer_list<std::string_view> parts,
                        std::string_view why) {
  std::set<std::string> names;
  std::error_code error;
  for (const fs::path& entry : visible_entries(folder, error)) {
    const std::string name = entry.filename(), small = in_small_letters(name);
    const auto is_in = [&](std::string_view part) { return small.find(part) != small.npos; };
    if (std::ranges::any_of(parts, is_in)) names.insert(name);
  }
  if (names.empty()) return "";
  const std::size_t more = names.size() - std::min(names.size(), kMostShown);
  while (names.size() > kMostShown) names.erase(std::prev(names.end()));
  return fmt::format(" (found {}{}{}{})", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "", why.empty() ? "" : ": ",
                     why);
}

}  // namespace keel::io
