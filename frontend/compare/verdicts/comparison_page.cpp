#include "frontend/compare/verdicts/comparison_page.h"

#include <algorithm>
#include <cmath>

#include "frontend/io/markup.h"
#include "frontend/report/page.h"

namespace keel::compare {
namespace {

using io::escape_markup;

// The picture, in pixels: a bar a node and backend, from 1e-4 of the bound to 1e4 of it, behind a
// name that has all the room that it needs.
constexpr double kBar = 14, kWidth = 480, kTop = 24, kBottomTitle = 26, kNameChar = 6.3;
constexpr double kLowest = -4, kHighest = 4;  // powers of 10

std::string bar_name(const NodeSummary& s) {
  return fmt::format("{} {} {}", s.worst.path, s.worst.op, s.worst.backend);
}

double label_width(const Comparison& c) {
  std::size_t longest = 0;
  for (const NodeSummary& s : c.nodes) longest = std::max(longest, bar_name(s).size());
  return 12 + kNameChar * double(longest);
}

double place(double of_bound) {
  const double power = of_bound > 0 ? std::log10(of_bound) : kLowest;
  return (std::clamp(power, kLowest, kHighest) - kLowest) / (kHighest - kLowest) * kWidth;
}

std::string_view colour(const NodeSummary& s) {
  switch (s.verdict()) {
    case Verdict::kDiverges:
      return "#d55e00";
    case Verdict::kSuspect:
      return "#e69f00";
    case Verdict::kUncompared:
    case Verdict::kRefused:
      return "#999999";
    default:
      return "#0072b2";
  }
}

std::string bar(const NodeSummary& s, double label, double y) {
  return fmt::format(
      "<g><title>{0}: {1:.3g} of the bound</title><text x=\"{2}\" y=\"{3}\" text-anchor=\"end\" "
      "font-size=\"11\">{0}</text><rect x=\"{4}\" y=\"{5}\" width=\"{6:.1f}\" height=\"{7}\" "
      "fill=\"{8}\"/></g>\n",
      escape_markup(bar_name(s)), s.worst.errors.of_bound, label - 6, y + kBar - 4, label, y + 2,
      std::max(place(s.worst.errors.of_bound), 1.0), kBar - 4, colour(s));
}

std::string line_at(double power, double label, double height) {
  const double x = label + place(std::pow(10, power));
  return fmt::format(
      "<line x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\" stroke=\"{3}\"/><text x=\"{0}\" y=\"14\" "
      "text-anchor=\"middle\" font-size=\"11\">{4:g}</text>\n",
      x, kTop - 4, height, power == 0 ? "#222222" : "#e4e4e4", std::pow(10, power));
}

std::string failure_text(const NodeReport& r) {
  const Element& w = r.errors.worst;
  return fmt::format("output {} element {}: expected {:.9g}, got {:.9g}, bound {:.3g}", w.port,
                     w.index, w.expected, w.got, w.bound);
}

// Neither passed nor failed: what no verdict can be given of.
bool is_skipped(const NodeSummary& s) {
  return s.verdict() != Verdict::kOk && s.verdict() != Verdict::kDiverges;
}

std::string test_case(const Comparison& c, const NodeSummary& s, const CommandOf& command) {
  const NodeReport& r = s.worst;
  std::string inside;
  if (is_skipped(s)) {
    const std::string_view word = choice_words(s.verdict())[std::size_t(s.verdict())];
    inside = fmt::format("<skipped message=\"{}: {}\"/>", word, escape_markup(reservation(s)));
  } else if (s.diverged > 0) {
    inside = fmt::format("<failure message=\"{}\">{}</failure>", escape_markup(failure_text(r)),
                         escape_markup(command(c.subject, r.path)));
  }
  return fmt::format("<testcase classname=\"{}\" name=\"{} {}\">{}</testcase>\n",
                     escape_markup(c.subject + "." + r.backend), escape_markup(r.path),
                     escape_markup(r.op), inside);
}

void add_section(report::Page& page, const Comparison& c, const CommandOf& command) {
  page.heading(c.subject);
  page.paragraph(verdict_text({&c, 1}) + ".");
  if (c.first) {
    page.paragraph(fmt::format("first: {} on {}, {}", c.first->path, c.first->backend,
                               failure_text(*c.first)));
    page.code(command(c.subject, c.first->path));
  }
  page.figure(
      error_picture(c),
      "The nodes in the order in which they run. Blue: within what rounding explains, yellow: "
      "suspect, red: differs by more, grey: not compared");
  report::Rows rows = summary_rows(c.ranked(), ErrorColumns::kAll);
  // The node comes first, as each part of a wide table begins with the first column.
  for (std::vector<std::string>& row : rows) std::ranges::rotate(row, row.end() - 1);
  page.table(rows);
  page.paragraph(summary_legend(ErrorColumns::kAll));
}

}  // namespace

std::string error_picture(const Comparison& c) {
  const double height = kTop + kBar * double(c.nodes.size()) + 4, label = label_width(c);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n",
      label + kWidth + 20, height + kBottomTitle);
  for (double power = kLowest; power <= kHighest; power += 2) svg += line_at(power, label, height);
  double y = kTop;
  for (const NodeSummary& s : c.nodes) {
    svg += bar(s, label, y);
    y += kBar;
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\">largest error, in units of "
      "what rounding explains (logarithmic)</text>\n",
      label + kWidth / 2, height + 18);
  return svg + "</svg>\n";
}

std::string comparison_page(std::span<const Comparison> comparisons, const CommandOf& command) {
  report::Page page("keel compare");
  for (const Comparison& c : comparisons) add_section(page, c, command);
  return page.take();
}

std::string junit_text(std::span<const Comparison> comparisons, const CommandOf& command) {
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const Comparison& c : comparisons) {
    xml += fmt::format("<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
                       escape_markup(c.subject), c.nodes.size(), c.diverged(),
                       std::ranges::count_if(c.nodes, is_skipped));
    for (const NodeSummary& s : c.nodes) xml += test_case(c, s, command);
    xml += "</testsuite>\n";
  }
  return xml + "</testsuites>\n";
}

}  // namespace keel::compare
