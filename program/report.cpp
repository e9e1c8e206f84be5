// keel report
#include "frontend/report/report.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "frontend/io/chart_formats.h"
#include "frontend/report/report_files.h"
#include "program/common.h"
#include "program/metric_facts.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;

// Each folder once, however often and by whatever path it is named.
std::vector<report::Run> read_runs(const std::vector<std::string>& folders) {
  std::vector<report::Run> runs;
  std::vector<fs::path> seen;
  for (const std::string& folder : folders) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(folder, error);
    if (std::ranges::find(seen, real) != seen.end()) continue;
    seen.push_back(real);
    runs.push_back(report::read_run(folder));
  }
  return runs;
}

std::string text_of(const std::vector<report::SectionReport>& reports) {
  std::string text;
  for (const report::SectionReport& r : reports) {
    text += r.section.model + "\n";
    if (r.section.differing.size() > 1) text += table_text(report::settings_rows(r)) + "\n";
    text += table_text(report::result_rows(r)) + "\n";
    if (!r.catch_ups.empty()) text += table_text(report::catch_up_rows(r)) + "\n";
  }
  return text;
}

}  // namespace

int run_report(const ReportArgs& args) {
  io::expect_converter(args.formats);
  const std::vector<report::Run> runs = read_runs(args.runs);
  const std::vector<report::SectionReport> reports = report::make_report(
      runs, metric_facts, {parse_choice<report::ChartAxis>(args.axis), args.log_x});
  std::vector<std::string> files;
  for (const fs::path& path : report::write_report(args.out, reports)) {
    files.push_back(path);
    if (path.extension() != ".svg") continue;
    for (const fs::path& made : io::write_formats(path, args.formats)) files.push_back(made);
  }
  if (args.json) {
    print_json({{"sections", report::report_json(reports)}, {"files", files}});
  } else {
    print(text_of(reports) + fmt::format("written: {}\n", fmt::join(files, " ")));
  }
  return 0;
}

}  // namespace keel::cli
