#include "frontend/report/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "frontend/report/spread.h"
#include "frontend/train/progress.h"

namespace keel::report {
namespace {

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string ours_text(const ComparedCell& cell, int digits, const std::string& sign) {
  if (cell.ours.empty()) return or_dash(cell.mark);
  return text(spread_of(cell.ours), digits, sign);
}

}  // namespace

std::string merged_text(const std::set<std::string>& texts) {
  const std::string &first = *texts.begin(), &last = *texts.rbegin();
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  // All begin with what the least and the greatest of them share. Words and numbers stay whole.
  auto begin = std::size_t(std::ranges::mismatch(first, last).in1 - first.begin());
  while (begin > 0 && is_word(first[begin - 1])) --begin;
  std::size_t end = first.size() - begin;
  for (const std::string& text : texts) {
    const std::size_t most = std::min(end, text.size() - begin);
    for (end = 0; end < most && text.rbegin()[long(end)] == first.rbegin()[long(end)];) ++end;
  }
  while (end > 0 && is_word(first[first.size() - end])) --end;
  std::vector<std::string> own;
  for (const std::string& text : texts) {
    own.push_back(text.substr(begin, text.size() - begin - end));
  }
  return fmt::format("{}{}{}", first.substr(0, begin), fmt::join(own, ", "),
                     first.substr(first.size() - end));
}

Rows compared_rows(const Comparison& comparison, const std::string& sign) {
  Rows rows{{"norm"}};
  for (const ComparedColumn& column : comparison.columns) rows[0].push_back(column.title);
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(comparison.rows[i]);
    for (std::size_t j = 0; j < comparison.columns.size(); ++j) {
      const ComparedCell& cell = comparison.cells[i][j];
      row.push_back(fmt::format("{} / {}", or_dash(cell.paper),
                                ours_text(cell, comparison.columns[j].digits, sign)));
      if (!cell.ours.empty()) row.back() += fmt::format(" ({})", cell.ours.size());
    }
  }
  return rows;
}

Rows cell_rows(const Comparison& comparison, const std::string& sign) {
  Rows rows{{"norm", "column", "paper", "ours", "n", "epochs", "time", "note"}};
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    for (std::size_t j = 0; j < comparison.columns.size(); ++j) {
      const ComparedCell& cell = comparison.cells[i][j];
      const ComparedColumn& column = comparison.columns[j];
      rows.push_back({comparison.rows[i], column.name, or_dash(cell.paper),
                      ours_text(cell, column.digits, sign), fmt::format("{}", cell.ours.size()),
                      cell.epochs ? fmt::format("{:.1f}", *cell.epochs) : "-",
                      cell.seconds ? train::duration_text(*cell.seconds) : "-", cell.note});
    }
  }
  return rows;
}

}  // namespace keel::report
