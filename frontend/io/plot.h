// Line plots as SVG, drawn without any library.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace keel::io {

// A style is a colour and dashes: style % kPlotColours is its colour, and all kPlotStyles styles
// differ; after these they repeat.
constexpr std::size_t kPlotColours = 7, kPlotStyles = 28;

struct PlotSeries {
  std::string name;
  std::vector<double> x, y;                 // of one length
  std::vector<double> low = {}, high = {};  // the edges of a band, at every x; or none
  std::optional<std::size_t> style = {};    // nothing: the series' place among all
};

struct Plot {
  std::string title, x_label, y_label;
  bool log_y = false;
  std::vector<PlotSeries> series;
  bool whole_x = false;  // marks only whole numbers
  bool log_x = false;
  bool from_zero = false;    // a linear vertical axis begins at 0, unless a value is negative
  std::string caption = {};  // drawn below the plot
  std::string about = {};    // for readers who do not see the plot; empty: the title
};

// The plot as one SVG document, in which nothing is cut off: titles, captions and legends take as
// many lines as they need, and the label of an axis becomes narrower. A line of few points has a
// dot at each. The label of a logarithmic axis says that it is logarithmic. Points
// that are not finite, beyond 1e100 or, on a logarithmic axis, below 1e-100 are left out and
// interrupt their line. Text is escaped; characters that XML does not allow become U+FFFD. Throws
// Error{kUsage} when x, y and the band of a series differ in length.
std::string plot_svg(const Plot& plot);

// Writes plot_svg to a file, whole or not at all. Throws Error{kIo}.
void write_plot(const std::filesystem::path& path, const Plot& plot);

}  // namespace keel::io
