// Ticks are round and cover the range; the SVG is well-formed whatever the text and the values.
#include "frontend/io/plot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/plot_text.h"
#include "frontend/io/plot_ticks.h"
#include "src/core/error.h"
#include "tests/support/markup_check.h"
#include "tests/support/temp_dir.h"

using namespace keel::io;
using keel::test::well_formed;

namespace {

constexpr double kNaN = NAN;

// The texts between `before` and the next quote, wherever `before` occurs.
std::vector<std::string> values_after(const std::string& text, std::string_view before) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(before); at != text.npos; at = text.find(before, at + 1)) {
    const std::size_t begin = at + before.size();
    found.push_back(text.substr(begin, text.find('"', begin) - begin));
  }
  return found;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

Plot plot_of(std::vector<double> x, std::vector<double> y, bool log_y = false) {
  return {"title", "x", "y", log_y, {{"only", std::move(x), std::move(y)}}};
}

}  // namespace

TEST_CASE("plot: linear ticks are multiples of 1, 2 or 5") {
  CHECK(linear_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(linear_ticks(-1, 1, 4) == std::vector<double>{-1, -0.5, 0, 0.5, 1});
  CHECK(linear_ticks(3, 29990, 6).front() == 5000);
  CHECK(tick_labels(linear_ticks(0.0, 0.3, 6)) ==
        std::vector<std::string>{"0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3"});
  CHECK(tick_labels(linear_ticks(1000.001, 1000.004, 3)) ==
        std::vector<std::string>{"1000.001", "1000.002", "1000.003", "1000.004"});
}

TEST_CASE("plot: every range gets a sensible number of ticks inside it") {
  for (double low : {-1e6, -3.7, 0.0, 1e-8, 0.9, 123456.0}) {
    for (double width : {1e-6, 0.37, 1.0, 99.5, 1e7}) {
      CAPTURE(low);
      CAPTURE(width);
      const std::vector<double> ticks = linear_ticks(low, low + width, 7);
      CHECK(ticks.size() >= 4);
      CHECK(ticks.size() <= 12);
      CHECK(ticks.front() >= low - width * 1e-6);
      CHECK(ticks.back() <= low + width * (1 + 1e-6));
    }
  }
}

TEST_CASE("plot: logarithmic ticks follow the number of decades") {
  CHECK(log_ticks(0.01, 1) == std::vector<double>{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1});
  CHECK(log_ticks(1e-4, 1e2).size() == 7);
  const std::vector<double> many = log_ticks(1e-30, 1e30);
  CHECK(many.size() >= 5);
  CHECK(many.size() <= 10);
  CHECK(log_ticks(0.93, 1.08).size() >= 4);  // no power of ten but 1: linear ticks
}

TEST_CASE("plot: tick labels are short") {
  CHECK(tick_labels({0, 10000, 20000}) == std::vector<std::string>{"0", "10k", "20k"});
  CHECK(tick_labels({0, 5e5, 1e6}) == std::vector<std::string>{"0", "0.5M", "1M"});
  CHECK(tick_labels({1e-7, 1e-5, 1e-3}) == std::vector<std::string>{"1e-7", "1e-5", "0.001"});
}

TEST_CASE("plot: text is escaped and the document well-formed") {
  Plot plot = plot_of({0, 1}, {2, 3});
  plot.title = "a < b && \"c\" > d";
  plot.x_label.assign("bad \xff\x01\0", 7).append("\xed\xa0\x80 \uFFFE \u00e9");
  plot.series.push_back({"</svg>", {0, 1}, {1, 2}});
  const std::string svg = plot_svg(plot);
  CHECK(well_formed(svg));
  CHECK(count(svg, "a &lt; b &amp;&amp; &quot;c&quot; &gt; d") == 2);  // as <title>, and drawn
  CHECK(count(svg, "&lt;/svg&gt;") == 1);
  CHECK(count(svg, "\u00e9") == 1);
  CHECK(count(svg, "\uFFFE") == 0);
  CHECK(svg.find('\x01') == std::string::npos);
  CHECK(svg.find('\xff') == std::string::npos);
  CHECK_FALSE(well_formed("<a><b></a></b>"));
  CHECK_FALSE(well_formed("<a>&x;</a>"));
}

TEST_CASE("plot: many series differ in colour and dash, and have a legend each") {
  Plot plot{"many", "x", "y", false, {}};
  for (int i = 0; i < 28; ++i)
    plot.series.push_back({fmt::format("s{}!", i), {0, 1}, {0, 1.0 + i}});
  const std::string svg = plot_svg(plot);
  CHECK(well_formed(svg));
  for (int i = 0; i < 28; ++i) CHECK(count(svg, fmt::format(">s{}!<", i)) == 1);
  const auto colours = values_after(svg, "fill=\"none\" stroke=\"");
  const auto dashes = values_after(svg, "stroke-dasharray=\"");
  REQUIRE(colours.size() == dashes.size() + 1);  // the axes are drawn first, without dashes
  std::map<std::string, int> styles;
  for (std::size_t i = 0; i < dashes.size(); ++i) ++styles[colours[i + 1] + dashes[i]];
  CHECK(styles.size() == 28);
  for (const auto& [text, uses] : styles) CHECK(uses == 2);  // the line and its legend
}

TEST_CASE("plot: points that cannot be shown interrupt the line") {
  const std::string svg = plot_svg(plot_of({0, 1, 2, 3, 4, 5}, {1, 2, kNaN, 3, INFINITY, 4}));
  CHECK(count(svg, "stroke-dasharray") == 1);          // 0-1
  CHECK(count(svg, "stroke-linecap=\"round\"") == 4);  // a dot at each that can be shown
  CHECK(count(plot_svg(plot_of({0, 1, 2}, {1, 0, 2}, true)), "stroke-linecap=\"round\"") == 2);
}

TEST_CASE("plot: extreme values give finite coordinates") {
  const std::vector<std::vector<double>> ys = {{},
                                               {5},
                                               {0},
                                               {kNaN},
                                               {1e308, -1e308},
                                               {1e99, -1e99},
                                               {1e-99, 1e99},
                                               {1e9, 1e9 + 1e-6},
                                               {5e-324, 1e-310}};
  for (bool log : {false, true}) {
    for (const std::vector<double>& y : ys) {
      const std::string svg = plot_svg(plot_of(y, y, log));
      CAPTURE(svg);
      CHECK(well_formed(svg));
      CHECK(svg.size() < 20000);
      CHECK(svg.find("nan") == std::string::npos);
      CHECK(svg.find("inf") == std::string::npos);
    }
  }
  CHECK(count(plot_svg(plot_of({}, {})), "no data") == 1);
  CHECK(count(plot_svg(plot_of({1}, {1})), "no data") == 0);
}

TEST_CASE("plot: a band lies under the lines, and is part of the range") {
  Plot plot = plot_of({0, 1, 2}, {5, 5, 5});
  plot.series[0].low = {4, 4, 4};
  plot.series[0].high = {10, 10, 6};
  plot.series.push_back({"other", {0, 1, 2}, {9, 9, 9}});
  const std::string svg = plot_svg(plot);
  CHECK(well_formed(svg));
  // x runs from 76 to 676, y from 382 up to 48 over [4, 10] and 0.3 at both ends.
  const auto y_of = [](double y) { return 382 - (y - 3.7) / 6.6 * (382 - 48); };
  const std::string area = fmt::format(
      "M76.00 {0:.2f}L376.00 {0:.2f}L676.00 {1:.2f}L676.00 {2:.2f}L376.00 {2:.2f}L76.00 {2:.2f}Z",
      y_of(10), y_of(6), y_of(4));
  const std::size_t band = svg.find(area + "\" fill=\"#0072b2\" fill-opacity=");
  REQUIRE(band != std::string::npos);
  CHECK(svg.find("stroke-dasharray", band) != std::string::npos);
  CHECK(svg.find("stroke-dasharray") > band);
  CHECK(count(svg, "fill-opacity") == 1);
}

TEST_CASE("plot: a band of one point is a bar, and what cannot be shown interrupts it") {
  Plot plot = plot_of({0, 1, 2, 3}, {1, 2, 3, 4}, true);
  plot.series[0].low = {0.5, 0, 2, 3};
  plot.series[0].high = {2, 3, 4, 5};
  const std::string svg = plot_svg(plot);
  CHECK(well_formed(svg));
  CHECK(count(svg, "fill-opacity") == 2);    // 0, and 2 to 3
  CHECK(count(svg, "stroke-opacity") == 1);  // 0
  plot.series[0].high[2] = std::nan("");
  CHECK(count(plot_svg(plot), "stroke-opacity") == 2);  // 0, and 3
  plot.series[0].low.pop_back();
  CHECK_THROWS_WITH_AS(plot_svg(plot),
                       "[plot] series only: expected a band of 4 points, got 3 and 4", keel::Error);
  plot.series[0].low.resize(4);
  plot.series[0].high.clear();
  CHECK_THROWS_WITH_AS(plot_svg(plot),
                       "[plot] series only: expected a band of 4 points, got 4 and 0", keel::Error);
  plot.series[0].low.resize(3);
  plot.series[0].high.resize(3);
  CHECK_THROWS_WITH_AS(plot_svg(plot),
                       "[plot] series only: expected a band of 4 points, got 3 and 3", keel::Error);
}

TEST_CASE("plot: whole numbers alone are marked where that is asked for") {
  Plot plot = plot_of({1, 4}, {8, 9});
  CHECK(count(plot_svg(plot), ">1.5<") == 1);
  plot.whole_x = true;
  const std::string svg = plot_svg(plot);
  CHECK(count(svg, ">1.5<") == 0);
  for (const char* label : {">1<", ">2<", ">3<", ">4<"}) CHECK(count(svg, label) == 1);
}

TEST_CASE("plot: a logarithmic horizontal axis marks powers of ten, and has nothing at 0") {
  Plot plot = plot_of({0, 1, 100, 10000}, {2, 3, 4, 5});
  plot.log_x = plot.whole_x = true;
  const std::string svg = plot_svg(plot);
  for (const char* label : {">1<", ">10<", ">100<", ">1000<", ">10k<"})
    CHECK(count(svg, label) == 1);
  CHECK(count(svg, "M76.00 ") > 0);
  const std::vector<std::string> paths = values_after(svg, "<path d=\"");
  CHECK(std::ranges::any_of(paths, [](const std::string& path) {
    return path.starts_with("M76.00 ") && path.find("L376.00 ") != path.npos &&
           path.find("L676.00 ") != path.npos;
  }));
}

TEST_CASE("plot: an axis that is logarithmic says so") {
  Plot plot = plot_of({1, 2}, {3, 4});
  plot.x_label = "step";
  plot.y_label = "loss";
  plot.log_y = true;
  CHECK(count(plot_svg(plot), ">step<") == 1);
  CHECK(count(plot_svg(plot), ">loss (logarithmic)<") == 1);
  plot.log_x = true;
  plot.log_y = false;
  CHECK(count(plot_svg(plot), ">step (logarithmic)<") == 1);
  CHECK(count(plot_svg(plot), ">loss<") == 1);
}

TEST_CASE("plot: a legend of long names lies below, where it makes nothing smaller") {
  const auto svg_of = [](std::size_t length) {
    Plot plot = plot_of({0, 1}, {2, 3});
    plot.series.push_back(plot.series[0]);
    plot.series[1].name = std::string(length, 'n');
    return plot_svg(plot);
  };
  const auto size = [](const std::string& svg) {
    return std::pair(std::stoi(values_after(svg, "svg\" width=\"").at(0)),
                     std::stoi(values_after(svg, "height=\"").at(0)));
  };
  CHECK(size(svg_of(10)).first > 700);
  CHECK(size(svg_of(10)).second == 440);
  CHECK(size(svg_of(60)) == std::pair(700, 480));
  CHECK(size(svg_of(100)).first > 700);  // it is not cut off
  for (const std::string& y : values_after(svg_of(60), "\" y=\"")) CHECK(std::stod(y) < 480);
}

TEST_CASE("plot: styles differ until they come again") {
  std::set<std::string> lines;
  for (std::size_t style = 0; style < kPlotStyles; ++style) {
    Plot plot = plot_of({0, 1}, {2, 3});
    plot.series[0].style = style;
    const std::string svg = plot_svg(plot), same = "stroke=\"";
    lines.insert(values_after(svg, same).back() + values_after(svg, "stroke-dasharray=\"").back());
    plot.series[0].style = style + kPlotColours;
    CHECK(values_after(plot_svg(plot), same).back() == values_after(svg, same).back());
  }
  CHECK(lines.size() == kPlotStyles);
}

TEST_CASE("plot: a series may have the style of another place") {
  Plot plot = plot_of({0, 1}, {2, 3});
  plot.series[0].style = 2;
  const std::string svg = plot_svg(plot);
  CHECK(values_after(svg, "stroke-dasharray=\"") == std::vector<std::string>{"2 2.5"});
  CHECK(count(svg, "#009e73") == 3);  // the line, and a dot at both points
}

TEST_CASE("plot: a line of few points has a dot at each, one of many where a point stands alone") {
  const auto dots = [](std::size_t points) {
    std::vector<double> x(points), y(points, 1.0);
    for (std::size_t i = 0; i < points; ++i) x[i] = double(i);
    if (points > 45) y[44] = y[46] = kNaN;
    return count(plot_svg(plot_of(x, y)), "stroke-linecap=\"round\"");
  };
  CHECK(dots(40) == 40);
  CHECK(dots(41) == 0);
  CHECK(dots(100) == 1);
}

TEST_CASE("plot: an axis of an error begins at 0, unless it cannot") {
  const auto has_zero = [](std::vector<double> y, bool log) {
    Plot plot = plot_of({0, 1}, std::move(y), log);
    plot.x_label = "x";
    plot.series[0].x = {1, 2};
    plot.from_zero = true;
    return count(plot_svg(plot), ">0<") > 0;
  };
  CHECK(has_zero({8, 9}, false));
  CHECK_FALSE(has_zero({8, 9}, true));
  CHECK_FALSE(has_zero({-9, -8}, false));
  Plot plot = plot_of({1, 2}, {8, 9});
  CHECK(count(plot_svg(plot), ">0<") == 0);
}

// The edges of the page, and the largest extent of each text by a generous width of a character.
TEST_CASE("plot: nothing is cut off, whatever is long") {
  Plot plot = plot_of({0, 1}, {2, 3});
  plot.series.push_back({std::string(90, 'l'), {0, 1}, {1, 2}});
  for (int i = 0; i < 30; ++i) plot.title += "of a word ";
  plot.title += std::string(200, 'w');
  for (int i = 0; i < 60; ++i) plot.caption += "and words ";
  plot.x_label = plot.y_label = std::string(150, 'a');
  const std::string svg = plot_svg(plot);
  CHECK(well_formed(svg));
  const std::string box = values_after(svg, "viewBox=\"").at(0);
  double left = 0, top = 0, width = 0, height = 0;
  REQUIRE(std::sscanf(box.c_str(), "%lf %lf %lf %lf", &left, &top, &width, &height) == 4);
  std::size_t titles = 0, captions = 0;
  for (std::size_t at = svg.find("<text "); at != svg.npos; at = svg.find("<text ", at + 1)) {
    const std::size_t begin = svg.find('>', at) + 1;
    const std::string open = svg.substr(at, begin - at),
                      content = svg.substr(begin, svg.find('<', begin) - begin);
    CAPTURE(open);
    CAPTURE(content);
    const double x = std::stod(values_after(open, " x=\"").at(0)),
                 y = std::stod(values_after(open, " y=\"").at(0));
    const bool is_title = count(open, "font-size=\"16\"") > 0;
    const bool is_turned = count(open, "rotate") > 0;
    const double shown = double(content.size()) * (is_title ? 8.5 : 6);
    if (is_turned || count(open, "textLength") > 0) {
      const double length = std::stod(values_after(open, "textLength=\"").at(0));
      CHECK(length <= (is_turned ? height : width));
      continue;
    }
    const double start = count(open, "\"middle\"") > 0 ? x - shown / 2
                         : count(open, "\"end\"") > 0  ? x - shown
                                                       : x;
    CHECK(start >= left);
    CHECK(start + shown <= left + width);
    CHECK(y - 10 >= top);
    CHECK(y <= top + height);
    titles += is_title;
    captions += count(open, "#555") > 0;
  }
  CHECK(titles >= 6);
  CHECK(captions >= 5);
}

TEST_CASE("plot text: words are wrapped, long words are cut between characters") {
  CHECK(wrapped("", 5).empty());
  CHECK(wrapped("  ", 5).empty());
  CHECK(wrapped("ab cd ef", 5) == std::vector<std::string>{"ab cd", "ef"});
  CHECK(wrapped("ab  cd", 80) == std::vector<std::string>{"ab cd"});
  CHECK(wrapped("abcdefgh i", 3) == std::vector<std::string>{"abc", "def", "gh", "i"});
  CHECK(wrapped("\u00e9\u00e9\u00e9", 3) == std::vector<std::string>{"\u00e9", "\u00e9", "\u00e9"});
  CHECK(wrapped("\u00e9", 1) == std::vector<std::string>{"\u00e9"});
}

TEST_CASE("plot text: quantities have the words that people use") {
  CHECK(words_of_quantity("lr") == "learning rate");
  CHECK(words_of_quantity("grad_norm") == "gradient norm");
  CHECK(words_of_quantity("bleu") == "BLEU");
  CHECK(words_of_quantity("uas_punct") == "UAS punct");
  CHECK(words_of_quantity("error") == "error");
}

TEST_CASE("plot: lengths must agree, and files are written whole") {
  CHECK_THROWS_WITH_AS(plot_svg(plot_of({1, 2}, {1})),
                       "[plot] series only: expected x and y of one length, got 2 and 1",
                       keel::Error);
  keel::test::TempDir dir;
  const Plot plot = plot_of({1, 2}, {3, 4});
  write_plot(dir / "p.svg", plot);
  CHECK(keel::test::read_bytes(dir / "p.svg") == plot_svg(plot));
}
