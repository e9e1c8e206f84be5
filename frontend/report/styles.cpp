#include "frontend/report/styles.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "frontend/nn/norm.h"

namespace keel::report {
namespace {

std::string_view name_of_norm(std::string_view norm) {
  return norm.substr(0, norm.find_first_of("{,"));
}

// FNV-1a, which is the same everywhere.
std::size_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return static_cast<std::size_t>(hash % 1000003);
}

std::string norm_name_of(const Group& group) {
  const Settings& settings = group.runs[0]->settings;
  const auto norm = settings.find("model.norm");
  return norm == settings.end() ? "" : std::string(name_of_norm(norm->second));
}

// The first of `count` styles from `style` on, `stride` apart, that is not taken.
std::optional<std::size_t> free_style(const std::set<std::size_t>& taken, std::size_t style,
                                      std::size_t stride) {
  for (std::size_t i = 0; i < io::kPlotStyles; ++i) {
    const std::size_t candidate = (style + i * stride) % io::kPlotStyles;
    if (!taken.contains(candidate)) return candidate;
  }
  return std::nullopt;
}

}  // namespace

std::size_t style_of_norm(const std::string& norm) {
  const std::string_view name = name_of_norm(norm);
  if (const int style = nn::norm_style(name); style >= 0) return std::size_t(style);
  const auto first = std::size_t(nn::norm_styles());  // of norms from outside
  return first + hash_of(name) % (io::kPlotStyles - first);
}

std::vector<std::size_t> styles_of(const Section& section) {
  std::vector<std::optional<std::size_t>> styles(section.groups.size());
  std::set<std::string> norms;
  std::set<std::size_t> taken;
  for (std::size_t i = 0; i < styles.size(); ++i) {
    const std::string norm = norm_name_of(section.groups[i]);
    const bool is_first = norms.insert(norm).second;
    if (is_first && taken.insert(style_of_norm(norm)).second) styles[i] = style_of_norm(norm);
  }
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < styles.size(); ++i) {
    const std::size_t own = style_of_norm(norm_name_of(section.groups[i]));
    if (!styles[i] && norms.size() > 1) styles[i] = free_style(taken, own, io::kPlotColours);
    if (!styles[i]) styles[i] = free_style(taken, own, 1);
    result.push_back(styles[i].value_or(own));  // there are more groups than styles
    taken.insert(result.back());
  }
  return result;
}

void set_norm_styles(io::Plot& plot) {
  std::set<int> taken;
  for (const io::PlotSeries& series : plot.series) {
    const int style = nn::norm_style(name_of_norm(series.name));
    if (style < 0 || !taken.insert(style).second) return;
  }
  for (io::PlotSeries& series : plot.series) series.style = style_of_norm(series.name);
}

}  // namespace keel::report
