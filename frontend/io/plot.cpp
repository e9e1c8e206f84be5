// The SVG elements of a line plot.
#include "frontend/io/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "frontend/io/atomic_file.h"
#include "frontend/io/markup.h"
#include "frontend/io/plot_scale.h"
#include "frontend/io/plot_text.h"
#include "frontend/io/plot_ticks.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

// Layout, in pixels: the edges of the plotting area, and what lies round it.
constexpr double kLeft = 76, kRightEdge = 676, kMiddleX = (kLeft + kRightEdge) / 2;
constexpr double kTop = 48, kBottomEdge = 382, kMiddleY = (kTop + kBottomEdge) / 2;
constexpr double kBottom = 58, kMargin = 24;
constexpr double kLegendLine = 20, kLegendSample = 30, kCharWidth = 6.9, kLegendBeside = 260;
constexpr double kTitleLine = 20, kTitleChar = 8.6, kTitleRoom = 16;
constexpr double kCaptionLine = 16, kCaptionChar = 6.1, kLabelChar = 7.2;
constexpr std::size_t kMostDots = 40;  // of a line with a dot at each point

constexpr std::string_view kGridColour = "#e4e4e4", kCentred = R"(text-anchor="middle")";

// Okabe and Ito's colours, which most colour-blind readers can tell apart, without the yellow. Four
// dashes against seven colours give 28 different lines, and dashes survive printing in grey.
constexpr std::array<std::string_view, kPlotColours> kColours{
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"};
constexpr std::array<std::string_view, 4> kDashes{"none", "7 3", "2 2.5", "9 3 2 3"};
static_assert(kPlotStyles == kColours.size() * kDashes.size());

std::string_view colour_of(std::size_t style) { return kColours[style % kColours.size()]; }

std::string axis_label(const std::string& label, bool is_log) {
  return is_log ? label + " (logarithmic)" : label;
}

void check_lengths(const PlotSeries& series) {
  check(series.x.size() == series.y.size(), ErrorKind::kUsage,
        "[plot] series {}: expected x and y of one length, got {} and {}", series.name,
        series.x.size(), series.y.size());
  for (const std::vector<double>* edge : {&series.low, &series.high}) {
    check(edge->size() == series.low.size() && (edge->empty() || edge->size() == series.x.size()),
          ErrorKind::kUsage, "[plot] series {}: expected a band of {} points, got {} and {}",
          series.name, series.x.size(), series.low.size(), series.high.size());
  }
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot);
  std::string take();

 private:
  void frame();
  void x_axis();
  void y_axis();
  bool shows(double x, double y) const {
    return can_show(x, plot_.log_x) && can_show(y, plot_.log_y);
  }
  std::string point(double x, double y) const { return fmt::format("{:.2f} {:.2f}", x_(x), y_(y)); }
  void band(const PlotSeries& series, std::size_t style);
  void band_run(const std::vector<std::string>& above, const std::vector<std::string>& below,
                std::size_t style);
  void line(const PlotSeries& series, std::size_t style);
  void run(const std::vector<std::string>& points, std::size_t style);
  void dots(const std::vector<std::string>& points, std::size_t style);
  void legend_entry(const PlotSeries& series, std::size_t place);
  double legend_width() const;
  // Beside the plot or, where its names are long, below it.
  bool has_legend_below() const { return legend_width() > kLegendBeside; }
  std::size_t style_of(std::size_t place) const {
    return plot_.series[place].style.value_or(place);
  }
  void text(double x, double y, std::string_view attributes, std::string_view content);
  // The label of an axis that is `room` long.
  void label(double x, double y, double room, std::string_view attributes,
             const std::string& content);
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
    check_lengths(series);
    for (const std::vector<double>* values : {&series.y, &series.low, &series.high}) {
      for (std::size_t i = 0; i < values->size(); ++i) {
        if (!shows(series.x[i], (*values)[i])) continue;
        x.include(series.x[i]);
        y.include((*values)[i]);
      }
    }
  }
  empty_ = x.empty();
  x_ = {with_margin(x, 0, plot.log_x), plot.log_x, kLeft, kRightEdge};
  y_ = {with_margin(y, 0.05, plot.log_y), plot.log_y, kBottomEdge, kTop};
  if (plot.from_zero && !plot.log_y && !empty_ && y.low >= 0) y_.range.low = 0;
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
  // Bands lie under all lines.
  for (std::size_t i = 0; i < plot_.series.size(); ++i) band(plot_.series[i], style_of(i));
  for (std::size_t i = 0; i < plot_.series.size(); ++i) {
    line(plot_.series[i], style_of(i));
    if (plot_.series.size() > 1) legend_entry(plot_.series[i], i);
  }
  if (empty_) text(kMiddleX, kMiddleY, kCentred, "no data");
  add("</svg>");
  return std::move(svg_);
}

void Drawing::text(double x, double y, std::string_view attributes, std::string_view content) {
  add(R"(<text x="{:.2f}" y="{:.2f}" {}>{}</text>)", x, y, attributes, escape_markup(content));
}

void Drawing::label(double x, double y, double room, std::string_view attributes,
                    const std::string& content) {
  std::string all = fmt::format(R"(text-anchor="middle" font-size="13"{})", attributes);
  if (kLabelChar * static_cast<double>(content.size()) > room) {
    all += fmt::format(R"( textLength="{:.0f}" lengthAdjust="spacingAndGlyphs")", room);
  }
  text(x, y, all, content);
}

void Drawing::frame() {
  const double entries = static_cast<double>(plot_.series.size());
  double width = kRightEdge + kMargin, bottom = kBottomEdge + kBottom;
  if (has_legend_below()) {
    width = std::max(width, kLeft + legend_width());
    bottom += kLegendLine * entries;
  } else {
    width += legend_width();
    bottom = std::max(bottom, kTop + kLegendLine * entries + kMargin);
  }
  const auto lines_of = [](const std::string& content, double room, double character) {
    return wrapped(content, static_cast<std::size_t>(room / character));
  };
  const double centred = 2 * (std::min(kMiddleX, width - kMiddleX) - kMargin);
  const std::vector<std::string> titles = lines_of(plot_.title, centred, kTitleChar);
  const std::vector<std::string> captions =
      lines_of(plot_.caption, width - 2 * kMargin, kCaptionChar);
  const double caption_top = bottom;
  if (!captions.empty()) bottom += kCaptionLine * static_cast<double>(captions.size()) + 8;
  // The plot stands where it stands; further lines of a title lie above 0.
  const double more = static_cast<double>(titles.size()) - 1;
  const double top = titles.empty() ? kTop - kTitleRoom : -kTitleLine * more;
  add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}")", width,
      bottom - top);
  add(R"(viewBox="0 {:.0f} {:.0f} {:.0f}" font-size="12" fill="#333" role="img")", top, width,
      bottom - top);
  add(R"(font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif">)");
  const std::string& about = plot_.about.empty() ? plot_.title : plot_.about;
  if (!about.empty()) add("<title>{}</title>", escape_markup(about));
  add(R"(<rect y="{:.0f}" width="100%" height="100%" fill="#fff"/>)", top);
  for (std::size_t i = 0; i < titles.size(); ++i) {
    text(kMiddleX, 27 - kTitleLine * (more - static_cast<double>(i)),
         R"(text-anchor="middle" font-size="16")", titles[i]);
  }
  for (std::size_t i = 0; i < captions.size(); ++i) {
    text(kMargin, caption_top + kCaptionLine * static_cast<double>(i + 1) - 4,
         R"(font-size="11.5" fill="#555")", captions[i]);
  }
}

void Drawing::x_axis() {
  const auto [low, high] = x_.range;
  std::vector<double> ticks = x_.log ? log_ticks(low, high) : linear_ticks(low, high, 7);
  if (plot_.whole_x) std::erase_if(ticks, [](double tick) { return tick != std::round(tick); });
  const std::vector<std::string> labels = tick_labels(ticks);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double x = x_(ticks[i]);
    add(R"(<path d="M{:.2f} {}V{}" stroke="{}"/>)", x, kTop, kBottomEdge, kGridColour);
    text(x, kBottomEdge + 18, kCentred, labels[i]);
  }
  label(kMiddleX, kBottomEdge + 43, kRightEdge - kLeft, "", axis_label(plot_.x_label, plot_.log_x));
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
  label(-kMiddleY, 22, kBottomEdge - kTop, R"svg( transform="rotate(-90)")svg",
        axis_label(plot_.y_label, plot_.log_y));
}

// One unbroken stretch of a line.
void Drawing::run(const std::vector<std::string>& points, std::size_t style) {
  if (points.size() < 2) return;
  add(R"(<path d="M{}" fill="none" stroke="{}" stroke-width="1.8" stroke-linejoin="round")",
      fmt::join(points, "L"), colour_of(style));
  add(R"(stroke-dasharray="{}"/>)", kDashes[style % kDashes.size()]);
}

void Drawing::dots(const std::vector<std::string>& points, std::size_t style) {
  for (const std::string& point : points) {
    add(R"(<path d="M{}l.01 0" stroke="{}" stroke-width="4.5" stroke-linecap="round"/>)", point,
        colour_of(style));
  }
}

void Drawing::line(const PlotSeries& series, std::size_t style) {
  const bool has_dots = series.x.size() <= kMostDots;
  std::vector<std::string> points;
  const auto draw = [&] {
    run(points, style);
    if (has_dots || points.size() == 1) dots(points, style);
    points.clear();
  };
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (shows(series.x[i], series.y[i])) {
      points.push_back(point(series.x[i], series.y[i]));
    } else {
      draw();
    }
  }
  draw();
}

// One unbroken stretch of a band; of a single point, a bar.
void Drawing::band_run(const std::vector<std::string>& above, const std::vector<std::string>& below,
                       std::size_t style) {
  if (above.empty()) return;
  const std::vector<std::string> back(below.rbegin(), below.rend());
  add(R"(<path d="M{}L{}Z" fill="{}" fill-opacity="0.16")", fmt::join(above, "L"),
      fmt::join(back, "L"), colour_of(style));
  if (above.size() == 1) add(R"(stroke="{}" stroke-opacity="0.4")", colour_of(style));
  add("/>");
}

void Drawing::band(const PlotSeries& series, std::size_t style) {
  std::vector<std::string> above, below;
  for (std::size_t i = 0; i < series.low.size(); ++i) {
    const double x = series.x[i];
    if (shows(x, series.low[i]) && shows(x, series.high[i])) {
      above.push_back(point(x, series.high[i]));
      below.push_back(point(x, series.low[i]));
    } else {
      band_run(above, below, style);
      above.clear();
      below.clear();
    }
  }
  band_run(above, below, style);
}

void Drawing::legend_entry(const PlotSeries& series, std::size_t place) {
  const double left = has_legend_below() ? kLeft : kRightEdge + 16, right = left + kLegendSample;
  const double top = has_legend_below() ? kBottomEdge + kBottom : kTop + 8;
  const double y = top + kLegendLine * static_cast<double>(place);
  run({fmt::format("{} {}", left, y), fmt::format("{} {}", right, y)}, style_of(place));
  text(right + 8, y + 4, "", series.name);
}

}  // namespace

std::string plot_svg(const Plot& plot) { return Drawing(plot).take(); }

void write_plot(const std::filesystem::path& path, const Plot& plot) {
  write_file_atomically(path, plot_svg(plot));
}

}  // namespace keel::io
