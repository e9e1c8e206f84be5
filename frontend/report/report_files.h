// Writes a report as files.
#pragma once

#include "frontend/report/report.h"

namespace keel::report {

// Writes report.html, runs.csv (all runs with all digits), curves.csv (all points) and an SVG for
// each chart; makes the folder if there is none. Returns their paths. Throws Error{kIo}.
std::vector<std::filesystem::path> write_report(const std::filesystem::path& folder,
                                                std::span<const SectionReport> reports);

}  // namespace keel::report
