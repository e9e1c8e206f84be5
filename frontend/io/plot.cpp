// Scales and the SVG elements of a line plot.
#include "frontend/io/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "frontend/io/atomic_file.h"
#include "frontend/io/plot_ticks.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

// Layout, in pixels: the edges of the plotting area, and what lies round it.
constexpr double kLeft = 76, kRightEdge = 676, kMiddleX = (kLeft + kRightEdge) / 2;
constexpr double kTop = 48, kBottomEdge = 382, kMiddleY = (kTop + kBottomEdge) / 2;
constexpr double kBottom = 58, kMargin = 24;
constexpr double kLegendLine = 20, kLegendSample = 30, kCharWidth = 6.9;

constexpr std::string_view kGridColour = "#e4e4e4", kCentred = R"(text-anchor="middle")";

// Okabe and Ito's colours, which most colour-blind readers can tell apart, without the yellow. Four
// dashes against seven colours give 28 different lines, and dashes survive printing in grey.
constexpr std::array<std::string_view, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#56b4e9", "#e69f00", "#000000"};
constexpr std::array<std::string_view, 4> kDashes{"none", "7 3", "2 2.5", "9 3 2 3"};

struct Range {
  double low = INFINITY, high = -INFINITY;

  bool empty() const { return low > high; }
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Values to pixels, from `first` at the low end to `last` at the high end.
struct Scale {
  Range range;
  bool log = false;
  double first = 0, last = 0;

  double operator()(double value) const {
    const auto at = [&](double v) { return log ? std::log10(v) : v; };
    const double part = (at(value) - at(range.low)) / (at(range.high) - at(range.low));
    return first + part * (last - first);
  }
};

bool can_show(double x, double y, bool log_y) {
  constexpr double kLimit = 1e100;  // ratios and differences of such values still are finite
  return std::abs(x) < kLimit && std::abs(y) < kLimit && (!log_y || y > 1 / kLimit);
}

// Opens an empty range or one of nearly a single value, and puts some air round the lines.
Range with_margin(Range range, double margin, bool log) {
  if (range.empty()) range = log ? Range{0.1, 1} : Range{0, 1};
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  if (range.high - range.low <= 1e-9 * largest) {
    const double extra = largest == 0 ? 1 : largest / 2;
    return {range.low - extra, range.high + extra};
  }
  if (log) {
    const double factor = std::pow(range.high / range.low, margin);
    return {range.low / factor, range.high * factor};
  }
  const double extra = margin * (range.high - range.low);
  return {range.low - extra, range.high + extra};
}

// Text for XML: valid UTF-8, no control characters, no markup.
std::string escaped(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kReplaced{
      {{"&", "&amp;"},
       {"<", "&lt;"},
       {">", "&gt;"},
       {"\"", "&quot;"},
       {"\uFFFE", "\uFFFD"},
       {"\uFFFF", "\uFFFD"}}};
  const auto replace = nlohmann::json::error_handler_t::replace;
  const std::string json = nlohmann::json(text).dump(-1, ' ', false, replace);
  const std::string valid = nlohmann::json::parse(json).get<std::string>();
  std::string result;
  for (std::string_view rest = valid; !rest.empty();) {
    const auto* found = std::ranges::find_if(
        kReplaced, [&](const auto& pair) { return rest.starts_with(pair.first); });
    const bool control = static_cast<unsigned char>(rest[0]) < 0x20;
    const std::size_t taken = found == kReplaced.end() ? 1 : found->first.size();
    result += found != kReplaced.end() ? found->second : control ? "\uFFFD" : rest.substr(0, 1);
    rest.remove_prefix(taken);
  }
  return result;
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot);
  std::string take();

 private:
  void frame();
  void x_axis();
  void y_axis();
  void line(const PlotSeries& series, std::size_t index);
  void run(const std::vector<std::string>& points, std::size_t index);
  void legend_entry(const PlotSeries& series, std::size_t index);
  double legend_width() const;
  void text(double x, double y, std::string_view attributes, std::string_view content);
  template <class... Args>
  void add(fmt::format_string<Args...> element, Args&&... args) {
    fmt::format_to(std::back_inserter(svg_), element, std::forward<Args>(args)...);
    svg_ += '\n';
  }

  const Plot& plot_;
  Scale x_, y_;
  bool empty_ = false;
  std::string svg_;
};

Drawing::Drawing(const Plot& plot) : plot_(plot) {
  Range x, y;
  for (const PlotSeries& series : plot.series) {
    check(series.x.size() == series.y.size(), ErrorKind::kUsage,
          "[plot] series {}: expected x and y of one length, got {} and {}", series.name,
          series.x.size(), series.y.size());
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!can_show(series.x[i], series.y[i], plot.log_y)) continue;
      x.include(series.x[i]);
      y.include(series.y[i]);
    }
  }
  empty_ = x.empty();
  x_ = {with_margin(x, 0, false), false, kLeft, kRightEdge};
  y_ = {with_margin(y, 0.05, plot.log_y), plot.log_y, kBottomEdge, kTop};
}

double Drawing::legend_width() const {
  if (plot_.series.size() < 2) return 0;
  std::size_t longest = 0;
  for (const PlotSeries& series : plot_.series) longest = std::max(longest, series.name.size());
  return kLegendSample + 24 + kCharWidth * static_cast<double>(longest);
}

std::string Drawing::take() {
  frame();
  x_axis();
  y_axis();
  for (std::size_t i = 0; i < plot_.series.size(); ++i) {
    line(plot_.series[i], i);
    if (plot_.series.size() > 1) legend_entry(plot_.series[i], i);
  }
  if (empty_) text(kMiddleX, kMiddleY, kCentred, "no data");
  add("</svg>");
  return std::move(svg_);
}

void Drawing::text(double x, double y, std::string_view attributes, std::string_view content) {
  add(R"(<text x="{:.2f}" y="{:.2f}" {}>{}</text>)", x, y, attributes, escaped(content));
}

void Drawing::frame() {
  const double width = kRightEdge + kMargin + legend_width();
  const double entries = static_cast<double>(plot_.series.size());
  const double height = std::max(kBottomEdge + kBottom, kTop + kLegendLine * entries + kMargin);
  add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}")", width, height);
  add(R"(viewBox="0 0 {:.0f} {:.0f}" font-size="12" fill="#333")", width, height);
  add(R"(font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif">)");
  add(R"(<rect width="100%" height="100%" fill="#fff"/>)");
  text(kMiddleX, 27, R"(text-anchor="middle" font-size="16")", plot_.title);
}

void Drawing::x_axis() {
  const std::vector<double> ticks = linear_ticks(x_.range.low, x_.range.high, 7);
  const std::vector<std::string> labels = tick_labels(ticks);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double x = x_(ticks[i]);
    add(R"(<path d="M{:.2f} {}V{}" stroke="{}"/>)", x, kTop, kBottomEdge, kGridColour);
    text(x, kBottomEdge + 18, kCentred, labels[i]);
  }
  text(kMiddleX, kBottomEdge + 43, R"(text-anchor="middle" font-size="13")", plot_.x_label);
}

void Drawing::y_axis() {
  const auto [low, high] = y_.range;
  const std::vector<double> ticks = y_.log ? log_ticks(low, high) : linear_ticks(low, high, 7);
  const std::vector<std::string> labels = tick_labels(ticks);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double y = y_(ticks[i]);
    add(R"(<path d="M{} {:.2f}H{}" stroke="{}"/>)", kLeft, y, kRightEdge, kGridColour);
    text(kLeft - 8, y + 4, R"(text-anchor="end")", labels[i]);
  }
  add(R"(<path d="M{} {}V{}H{}" fill="none" stroke="#555"/>)", kLeft, kTop, kBottomEdge,
      kRightEdge);
  // Turned about the origin first, so its x runs up the page.
  text(-kMiddleY, 22, R"svg(text-anchor="middle" font-size="13" transform="rotate(-90)")svg",
       plot_.y_label);
}

// One unbroken stretch of a line.
void Drawing::run(const std::vector<std::string>& points, std::size_t index) {
  const std::string_view colour = kColours[index % kColours.size()];
  if (points.size() == 1) {
    add(R"(<path d="M{}l.01 0" stroke="{}" stroke-width="4" stroke-linecap="round"/>)", points[0],
        colour);
  } else if (!points.empty()) {
    add(R"(<path d="M{}" fill="none" stroke="{}" stroke-width="1.8" stroke-linejoin="round")",
        fmt::join(points, "L"), colour);
    add(R"(stroke-dasharray="{}"/>)", kDashes[index % kDashes.size()]);
  }
}

void Drawing::line(const PlotSeries& series, std::size_t index) {
  std::vector<std::string> points;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (can_show(series.x[i], series.y[i], plot_.log_y)) {
      points.push_back(fmt::format("{:.2f} {:.2f}", x_(series.x[i]), y_(series.y[i])));
    } else {
      run(points, index);
      points.clear();
    }
  }
  run(points, index);
}

void Drawing::legend_entry(const PlotSeries& series, std::size_t index) {
  const double left = kRightEdge + 16, right = left + kLegendSample;
  const double y = kTop + 8 + kLegendLine * static_cast<double>(index);
  run({fmt::format("{} {}", left, y), fmt::format("{} {}", right, y)}, index);
  text(right + 8, y + 4, "", series.name);
}

}  // namespace

std::string plot_svg(const Plot& plot) { return Drawing(plot).take(); }

void write_plot(const std::filesystem::path& path, const Plot& plot) {
  write_file_atomically(path, plot_svg(plot));
}

}  // namespace keel::io
