// A comparison as Markdown, CSV, HTML and JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "frontend/report/comparison.h"
#include "frontend/report/page.h"
#include "frontend/report/spread.h"

namespace keel::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kSign = "\u00B1",
                     *kLegend = "Paper / ours: mean \u00B1 standard deviation (seeds).";

template <class Visit>
void for_each_cell(const Comparison& comparison, Visit visit) {
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    for (std::size_t j = 0; j < comparison.columns.size(); ++j) {
      visit(comparison.rows[i], comparison.columns[j], comparison.cells[i][j]);
    }
  }
}

// Every command under a line that says what it is of; columns of one training share theirs.
std::string commands_text(const Comparison& comparison) {
  std::string text;
  for_each_cell(comparison, [&](const std::string& row, const ComparedColumn& column,
                                const ComparedCell& cell) {
    std::string lines;
    for (const std::string& command : cell.commands) {
      if (text.find(command + "\n") == std::string::npos) lines += command + "\n";
    }
    if (!lines.empty()) text += fmt::format("# {}, {}\n{}", row, column.name, lines);
  });
  return text;
}

}  // namespace

std::string chart_file(const std::string& stem, const Chart& chart) {
  return fmt::format("{}-{}.svg", stem, chart.name);
}

std::string markdown_of(const Comparison& comparison, const std::string& stem) {
  std::string text = fmt::format("# {}\n\n", comparison.title);
  for (const std::string& remark : comparison.remarks) text += fmt::format("- {}\n", remark);
  const bool has_cells = !comparison.columns.empty();
  if (has_cells) {
    text += fmt::format("\n{}\n\n{}", kLegend, markdown_text(compared_rows(comparison, kSign)));
  }
  for (const Chart& chart : comparison.charts) {
    text += fmt::format("\n![{}]({})\n", chart.caption, chart_file(stem, chart));
  }
  for (const NamedTable& table : comparison.tables) {
    text += fmt::format("\n## {}\n\n{}", table.title, markdown_text(table.rows));
  }
  if (!has_cells) return text;
  text += fmt::format("\n## Cells\n\n{}", markdown_text(cell_rows(comparison, kSign)));
  return text + fmt::format("\n## Commands\n\n```sh\n{}```\n", commands_text(comparison));
}

std::string csv_of(const Comparison& comparison) {
  Rows rows{{"norm", "column", "paper", "mean", "deviation", "n", "epochs", "seconds", "mark",
             "note", "commands"}};
  for_each_cell(comparison, [&](const std::string& row, const ComparedColumn& column,
                                const ComparedCell& cell) {
    const Spread spread = spread_of(cell.ours);
    const std::string mean = spread.n > 0 ? exact_text(spread.mean) : "";
    rows.push_back({row, column.name, cell.paper, mean, exact_text(spread.deviation),
                    fmt::format("{}", spread.n), exact_text(cell.epochs), exact_text(cell.seconds),
                    cell.mark, cell.note, fmt::format("{}", fmt::join(cell.commands, "; "))});
  });
  return csv_text(rows);
}

namespace {

void add_to(Page& page, const Comparison& comparison) {
  for (const std::string& remark : comparison.remarks) page.paragraph(remark);
  const bool has_cells = !comparison.columns.empty();
  if (has_cells) {
    page.paragraph(kLegend);
    page.table(compared_rows(comparison, kSign));
  }
  for (const Chart& chart : comparison.charts) {
    page.figure(io::plot_svg(chart.plot), chart.caption);
  }
  for (const NamedTable& table : comparison.tables) {
    page.heading(table.title);
    page.table(table.rows);
  }
  if (!has_cells) return;
  page.heading("Cells");
  page.table(cell_rows(comparison, kSign));
  page.heading("Commands");
  page.code(commands_text(comparison));
}

}  // namespace

std::string html_of(const Comparison& comparison) {
  Page page(comparison.title);
  add_to(page, comparison);
  return page.take();
}

std::string html_of(const std::string& title, std::span<const Comparison> comparisons) {
  Page page(title);
  for (const Comparison& comparison : comparisons) {
    page.heading(comparison.title);
    add_to(page, comparison);
  }
  return page.take();
}

Json json_of(const Comparison& comparison) {
  Json cells = Json::array();
  for_each_cell(comparison, [&](const std::string& row, const ComparedColumn& column,
                                const ComparedCell& cell) {
    Json json{{"norm", row}, {"column", column.name}, {"paper", cell.paper}, {"ours", cell.ours}};
    if (!cell.ours.empty()) {
      const Spread spread = spread_of(cell.ours);
      json["mean"] = spread.mean;
      json["deviation"] = nullptr;
      if (spread.deviation) json["deviation"] = *spread.deviation;
    }
    if (cell.epochs) json["epochs"] = *cell.epochs;
    if (cell.seconds) json["seconds"] = *cell.seconds;
    if (!cell.mark.empty()) json["mark"] = cell.mark;
    if (!cell.note.empty()) json["note"] = cell.note;
    json["commands"] = cell.commands;
    cells.push_back(std::move(json));
  });
  Json json{{"table", comparison.title}, {"remarks", comparison.remarks}, {"cells", cells}};
  for (const NamedTable& table : comparison.tables) {
    json["tables"].push_back({{"title", table.title}, {"rows", table.rows}});
  }
  return json;
}

}  // namespace keel::report
