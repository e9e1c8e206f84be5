// Reports on any training runs, side by side.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "frontend/report/catch_up.h"
#include "frontend/report/figures.h"
#include "frontend/report/table.h"

namespace keel::report {

struct SectionReport {
  Section section;
  std::vector<Figure> figures;
  std::vector<Chart> charts;
  std::vector<CatchUp> catch_ups;
};

// The runs must outlive the report.
std::vector<SectionReport> make_report(std::span<const Run> runs, const FactsOf& facts_of,
                                       const ChartOptions& options = {});

// A row for each group: the settings that differ.
Rows settings_rows(const SectionReport& report);
// A row for each group: mean and deviation over its finished runs, epochs, time, items per second.
Rows result_rows(const SectionReport& report, const std::string& sign = "+-");
// A row for each metric and group with a baseline; only a heading if there is none.
Rows catch_up_rows(const SectionReport& report);
// A row for each run: its group, seed, outcome and numbers.
Rows run_rows(const SectionReport& report);

// An object for each section, with all digits.
nlohmann::ordered_json report_json(std::span<const SectionReport> reports);

}  // namespace keel::report
