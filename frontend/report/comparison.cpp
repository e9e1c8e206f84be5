#include "frontend/report/comparison.h"

#include <fmt/format.h>

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
