#include "frontend/report/report_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "frontend/io/atomic_file.h"
#include "frontend/report/page.h"
#include "src/core/error.h"

namespace keel::report {
namespace {

namespace fs = std::filesystem;

void add_once(std::vector<std::string>& list, const std::string& name) {
  if (std::ranges::find(list, name) == list.end()) list.push_back(name);
}

// The columns of runs.csv besides those that every run fills.
struct MoreColumns {
  std::vector<std::string> figures, settings;  // keys
};

MoreColumns columns_of(std::span<const SectionReport> reports) {
  MoreColumns columns;
  for (const SectionReport& report : reports) {
    for (const std::string& key : report.section.differing) add_once(columns.settings, key);
    for (const Figure& figure : report.figures) add_once(columns.figures, figure.key());
  }
  return columns;
}

std::string setting_of(const Run& run, const std::string& key) {
  const auto found = run.settings.find(key);
  return found == run.settings.end() ? "" : found->second;
}

std::string figure_of(const SectionReport& report, const Run& run, const std::string& key) {
  const auto figure = std::ranges::find(report.figures, key, &Figure::key);
  return figure == report.figures.end() ? "" : exact_text(value_in(run, *figure));
}

Rows exact_run_rows(std::span<const SectionReport> reports) {
  const MoreColumns more = columns_of(reports);
  Rows rows{{"run", "model", "group", "seed", "outcome", "epochs", "steps", "seconds",
             "items_per_second"}};
  rows[0].insert(rows[0].end(), more.figures.begin(), more.figures.end());
  rows[0].insert(rows[0].end(), more.settings.begin(), more.settings.end());
  for (const SectionReport& report : reports) {
    for_each_run(report.section, [&](const Group& group, const Run& run) {
      std::vector<std::string>& row = rows.emplace_back();
      row = {run.name,
             run.model,
             group.label,
             seed_of(run),
             name_of(run.outcome),
             exact_text(epochs_of(run)),
             exact_text(run.step),
             exact_text(run.seconds),
             exact_text(run.items_per_second)};
      for (const std::string& key : more.figures) row.push_back(figure_of(report, run, key));
      for (const std::string& key : more.settings) row.push_back(setting_of(run, key));
    });
  }
  return rows;
}

Rows curve_rows(std::span<const SectionReport> reports) {
  Rows rows{{"run", "group", "seed", "split", "quantity", "step", "epoch", "value"}};
  for (const SectionReport& report : reports) {
    for_each_run(report.section, [&](const Group& group, const Run& run) {
      for (const Curve& curve : run.curves) {
        for (std::size_t i = 0; i < curve.step.size(); ++i) {
          rows.push_back({run.name, group.label, seed_of(run), curve.split, curve.quantity,
                          exact_text(curve.step[i]), exact_text(epoch_at(run, curve.step[i])),
                          exact_text(curve.value[i])});
        }
      }
    });
  }
  return rows;
}

// The computers that the times are of.
std::string machines_of(const Section& section) {
  std::set<std::string> machines;
  for_each_run(section, [&](const Group&, const Run& run) {
    const auto fact = [&](const std::string& key) {
      const auto found = run.facts.find(key);
      return found == run.facts.end() ? "unknown" : found->second;
    };
    machines.insert(fmt::format("{} ({})", fact("run.processor"), fact("run.backend_description")));
  });
  return fmt::format("Measured on: {}.", fmt::join(machines, "; "));
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// A file's name that is not taken and has only letters, digits, '.', '_' and '-'.
std::string file_name(const std::string& wanted, std::set<std::string>& taken) {
  std::string stem = wanted;
  std::ranges::replace_if(
      stem, [](char c) { return !is_plain(c); }, '_');
  if (stem.starts_with('.')) stem[0] = '_';
  std::string name = stem;
  for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}-{}", stem, i);
  return name + ".svg";
}

void add_section(Page& page, const SectionReport& report) {
  page.heading(report.section.model);
  page.table(result_rows(report, "\u00B1"));
  // If only one setting differs, the groups' names say everything.
  if (report.section.differing.size() > 1) {
    page.paragraph("What the groups differ in:");
    page.table(settings_rows(report));
  }
  if (!report.catch_ups.empty()) {
    page.paragraph(
        "Updates to reach the best value of the baseline, the same training without a norm, as a "
        "share of those that the baseline took; curves are medians over seeds:");
    page.table(catch_up_rows(report));
  }
  for (const Chart& chart : report.charts) page.figure(io::plot_svg(chart.plot), chart.caption);
  page.paragraph("The runs one by one:");
  page.table(run_rows(report));
  page.paragraph(machines_of(report.section));
}

std::string page_of(std::span<const SectionReport> reports) {
  std::vector<std::string> models;
  for (const SectionReport& report : reports) models.push_back(report.section.model);
  Page page(fmt::format("Runs of {}", fmt::join(models, ", ")));
  page.paragraph(
      "Means \u00B1 standard deviations are over the finished runs of a group, which differ in "
      "nothing but their seeds. A single run has the binomial standard error of its test rows "
      "(s.e.), or the limit at 95 % confidence where all or none of them count. Lines are medians "
      "over a group's runs, bands reach from the least "
      "to the largest value. \u201Cbest\u201D are the weights that were best on the validation set "
      "by the first metric, \u201Clast\u201D those at the end.");
  for (const SectionReport& report : reports) add_section(page, report);
  return page.take();
}

}  // namespace

std::vector<fs::path> write_report(const fs::path& folder, std::span<const SectionReport> reports) {
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, ErrorKind::kIo, "{}: cannot make this folder: {}", folder.string(),
        error.message());
  std::vector<fs::path> paths;
  const auto write = [&](const std::string& name, const std::string& content) {
    paths.push_back(folder / name);
    io::write_file_atomically(paths.back(), content);
  };
  write("report.html", page_of(reports));
  write("runs.csv", csv_text(exact_run_rows(reports)));
  write("curves.csv", csv_text(curve_rows(reports)));
  std::set<std::string> taken;
  for (const SectionReport& report : reports) {
    for (const Chart& chart : report.charts) {
      write(file_name(report.section.model + "-" + chart.name, taken), io::plot_svg(chart.plot));
    }
  }
  return paths;
}

}  // namespace keel::report
