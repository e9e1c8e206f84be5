// Comparisons of keel's results with those that a paper printed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>

#include "frontend/report/charts.h"
#include "frontend/report/table.h"

namespace keel::report {

struct ComparedCell {
  std::string paper;                      // as printed; "": not reported
  std::vector<double> ours;               // in the paper's unit, one for each finished seed
  std::string mark;                       // shown if keel has no result: "no data", "diverged"
  std::string note;                       // an explanation of that, or of what is missing
  std::optional<double> epochs, seconds;  // means over the seeds
  std::vector<std::string> commands;      // for a shell, one for each seed
};

struct ComparedColumn {
  std::string name, title;
  int digits = 2;  // after the point
};

// A table that a study computed, under a title of its own.
struct NamedTable {
  std::string title;
  Rows rows;
};

// Without columns it has only remarks, tables and charts.
struct Comparison {
  std::string title;
  std::vector<std::string> remarks;  // source, recipe, data, seeds
  std::vector<std::string> rows;     // their names
  std::vector<ComparedColumn> columns;
  std::vector<std::vector<ComparedCell>> cells;  // by row and column
  std::vector<Chart> charts = {};                // for a figure: its curves
  std::vector<NamedTable> tables = {};           // of a study; shown after the charts
};

// The table with "paper / ours" in every cell: "99.14 / 99.10 +- 0.05 (3)", mean, deviation and
// number of seeds.
Rows compared_rows(const Comparison& comparison, const std::string& sign = "+-");
// A row for each cell, with epochs, time and note.
Rows cell_rows(const Comparison& comparison, const std::string& sign = "+-");

// Texts as one, which has once what all begin and end with: "rows (split 1, 2)" of "rows (split 1)"
// and "rows (split 2)". There must be at least one.
std::string merged_text(const std::set<std::string>& texts);

// The name of a chart's file; it begins with `stem`, like the others: "ba-figure6-nll4.svg".
std::string chart_file(const std::string& stem, const Chart& chart);

// Shows the charts as images in the files chart_file(stem, chart).
std::string markdown_of(const Comparison& comparison, const std::string& stem);
std::string csv_of(const Comparison& comparison);  // all digits, and the commands
std::string html_of(const Comparison& comparison);
// Several on one page.
std::string html_of(const std::string& title, std::span<const Comparison> comparisons);
nlohmann::ordered_json json_of(const Comparison& comparison);

}  // namespace keel::report
