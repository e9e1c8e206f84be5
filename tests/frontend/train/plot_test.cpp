// Ticks are round and cover the range; the SVG is well-formed whatever the text and the values.
#include "frontend/train/plot.h"

#include <doctest/doctest.h>

#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "frontend/train/plot_ticks.h"
#include "src/core/error.h"
#include "tests/support/temp_dir.h"

using namespace keel::train;

namespace {

constexpr double kNaN = NAN;

// Elements open and close in order, attributes are quoted, text holds no bare markup.
bool well_formed(const std::string& xml) {
  static const std::regex piece(R"re(<(\w+)((\s+[\w:-]+="[^"<&]*")*)\s*(/?)>|</(\w+)>|([^<]+))re");
  static const std::regex text(R"re(([^&<>]|&(amp|lt|gt|quot);)*)re");
  std::vector<std::string> open;
  std::size_t covered = 0;
  for (std::sregex_iterator it(xml.begin(), xml.end(), piece), end; it != end; ++it) {
    if (std::size_t(it->position()) != covered) return false;
    covered += std::size_t(it->length());
    if ((*it)[1].matched && (*it)[4].length() == 0) open.push_back((*it)[1]);
    if ((*it)[5].matched) {
      if (open.empty() || open.back() != (*it)[5]) return false;
      open.pop_back();
    }
    if ((*it)[6].matched && !std::regex_match((*it)[6].str(), text)) return false;
  }
  return covered == xml.size() && open.empty();
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
  plot.x_label = std::string("bad \xff\x01\0", 7) + "\xed\xa0\x80 \uFFFE \u00e9";
  plot.series.push_back({"</svg>", {0, 1}, {1, 2}});
  const std::string svg = plot_svg(plot);
  CHECK(well_formed(svg));
  CHECK(count(svg, "a &lt; b &amp;&amp; &quot;c&quot; &gt; d") == 1);
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
  const std::regex style(R"re(stroke="(#\w+)" stroke-width[^>]*stroke-dasharray="([^"]*)")re");
  std::map<std::string, int> styles;
  for (std::sregex_iterator it(svg.begin(), svg.end(), style), end; it != end; ++it) {
    ++styles[(*it)[1].str() + (*it)[2].str()];
  }
  CHECK(styles.size() == 28);
  for (const auto& [text, uses] : styles) CHECK(uses == 2);  // the line and its legend
}

TEST_CASE("plot: points that cannot be shown interrupt the line") {
  const std::string svg = plot_svg(plot_of({0, 1, 2, 3, 4, 5}, {1, 2, kNaN, 3, INFINITY, 4}));
  CHECK(count(svg, "stroke-dasharray") == 1);          // 0-1
  CHECK(count(svg, "stroke-linecap=\"round\"") == 2);  // 3 and 5 stand alone
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

TEST_CASE("plot: lengths must agree, and files are written whole") {
  CHECK_THROWS_WITH_AS(plot_svg(plot_of({1, 2}, {1})),
                       "[plot] series only: expected x and y of one length, got 2 and 1",
                       keel::Error);
  keel::testing::TempDir dir;
  const Plot plot = plot_of({1, 2}, {3, 4});
  write_plot(dir / "p.svg", plot);
  CHECK(keel::testing::read_bytes(dir / "p.svg") == plot_svg(plot));
}
