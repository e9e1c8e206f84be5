#include "frontend/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "frontend/io/markup.h"

namespace keel::report {
namespace {

using io::escape_markup;

constexpr std::string_view kStyle = R"(
body { font: 15px/1.45 Helvetica, Arial, 'DejaVu Sans', sans-serif; color: #222; max-width: 1100px;
  margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; }
h2 { font-size: 1.2em; margin-top: 2em; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: 1em 0; font-size: 0.93em; }
th, td { padding: 0.25em 0.6em; text-align: left; border-bottom: 1px solid #e4e4e4;
  vertical-align: top; }
th { border-bottom: 1px solid #555; }
td { overflow-wrap: anywhere; min-width: 10em; }
td.number { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal;
  min-width: 0; }
.wide { overflow-x: auto; }
figure { margin: 1.5em 0; break-inside: avoid; }
figcaption { color: #555; font-size: 0.93em; }
svg { width: 100%; height: auto; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f6f6f6; padding: 0.8em;
  font-size: 0.87em; }
@media print { body { font-size: 11px; margin: 0; } }
)";

// A dash stands where there is no number.
bool is_number(const std::string& text) {
  return text == "-" ||
         (!text.empty() && text.find_first_of("0123456789") <= (text[0] == '-' ? 1U : 0U));
}

// Escaped, with places where a line may end: keys are long words.
std::string breakable(const std::string& text) {
  std::string result;
  for (const char c : escape_markup(text)) {
    result += c;
    if (c == '.' || c == '_') result += "<wbr/>";
  }
  return result;
}

}  // namespace

Page::Page(std::string_view title) {
  html_ = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n";
  element("title", title);
  html_ += fmt::format("<style>{}</style></head><body>\n", kStyle);
  element("h1", title);
}

void Page::element(std::string_view name, std::string_view text) {
  fmt::format_to(std::back_inserter(html_), "<{0}>{1}</{0}>\n", name, escape_markup(text));
}

void Page::heading(std::string_view text) { element("h2", text); }

void Page::paragraph(std::string_view text) { element("p", text); }

void Page::table(const Rows& rows) {
  if (rows.size() < 2) return;
  constexpr std::size_t kMostColumns = 12;  // that stand side by side on a page
  const std::size_t columns = rows[0].size();
  for (std::size_t from = 1; from < std::max<std::size_t>(columns, 2); from += kMostColumns - 1) {
    Rows part;
    for (const std::vector<std::string>& row : rows) {
      const std::size_t to = std::min(from + kMostColumns - 1, row.size());
      part.push_back({row[0]});
      if (from < to) {
        part.back().insert(part.back().end(), row.begin() + long(from), row.begin() + long(to));
      }
    }
    narrow_table(part);
  }
}

void Page::narrow_table(const Rows& rows) {
  html_ += "<div class=\"wide\"><table>\n<tr>";
  for (const std::string& cell : rows[0]) html_ += "<th>" + breakable(cell) + "</th>\n";
  html_ += "</tr>\n";
  for (std::size_t i = 1; i < rows.size(); ++i) {
    html_ += "<tr>";
    for (const std::string& cell : rows[i]) {
      html_ += is_number(cell) ? "<td class=\"number\">" : "<td>";
      html_ += escape_markup(cell) + "</td>";
    }
    html_ += "</tr>\n";
  }
  html_ += "</table></div>\n";
}

void Page::figure(std::string_view svg, std::string_view caption) {
  fmt::format_to(std::back_inserter(html_), "<figure>\n{}", svg);
  element("figcaption", caption);
  html_ += "</figure>\n";
}

void Page::code(std::string_view text) {
  html_ += "<pre>";
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    html_ += escape_markup(text.substr(0, end)) + "\n";
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  html_ += "</pre>\n";
}

std::string Page::take() {
  html_ += "</body></html>\n";
  return std::move(html_);
}

}  // namespace keel::report
