#include "program/reproduce_measure.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"
#include "frontend/io/input_file.h"
#include "program/common.h"
#include "studies/study.h"
#include "studies/transfer_data.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path file_of(const fs::path& folder, const std::string& study) {
  return folder / (study + ".json");
}

// A file that was damaged is measured anew.
Json read_measured(const fs::path& folder, const std::string& study) {
  const fs::path path = file_of(folder, study);
  if (!fs::exists(path)) return {};
  Json found = Json::parse(io::InputFile(path).read_all(), nullptr, /*allow_exceptions=*/false);
  return found.is_object() ? found : Json{};
}

std::optional<double> number_of(const std::string& cell) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool whole = error == std::errc() && end == cell.data() + cell.size();
  return whole ? std::optional(value) : std::nullopt;
}

// The last two columns of a study of runs: what was measured, and the value.
Json numbers_of(const study::Result& result) {
  Json numbers = Json::object();
  for (const study::Table& table : result.tables) {
    for (std::size_t i = 1; i < table.rows.size(); ++i) {
      const std::vector<std::string>& row = table.rows[i];
      if (const auto value = number_of(row.back())) numbers[row[row.size() - 2]] = *value;
    }
  }
  return numbers;
}

void measure(const fs::path& folder, const std::string& study, const ReproduceArgs& args) {
  const auto backend = make_backend(args.run);
  study::Options options{*backend};
  options.data = args.run.data;
  options.runs = {checkpoint_path(folder.string()).string()};
  options.quiet = false;
  const study::Result result = study::find_study(study).run(options);
  io::write_file_atomically(file_of(folder, study), numbers_of(result).dump(2) + "\n");
}

}  // namespace

std::string missing_for_study(const ReproduceArgs& args, const study::PaperColumn& column) {
  const std::string& data = args.run.data;
  if (data.empty() || data == "builtin") {
    return fmt::format("keel study {} measures it on sentences of --data DIR", column.study);
  }
  const std::vector<std::string> known = study::transfer_quantities(data);
  if (std::ranges::find(known, column.metric) != known.end()) return "";
  return fmt::format("{}: expected files of '{}' for keel study {}, got none", data, column.metric,
                     column.study);
}

std::vector<std::string> study_words(const ReproduceArgs& args, const study::PaperColumn& column,
                                     const fs::path& folder) {
  return {"study", column.study, "--run", folder.string(), "--data", args.run.data};
}

void measure_trials(const Plan& plan, const ReproduceArgs& args) {
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    for (std::size_t j = 0; j < plan.table.columns.size(); ++j) {
      const study::PaperColumn& column = plan.table.columns[j];
      if (column.study.empty()) continue;
      for (const std::size_t place : plan.cells[i][j].trials) {
        const Trial& trial = plan.trials[place];
        if (trial.state != TrialState::kFinished) continue;
        if (!read_measured(trial.folder, column.study).contains(column.metric)) {
          measure(trial.folder, column.study, args);
        }
      }
    }
  }
}

std::optional<double> measured_value(const fs::path& folder, const study::PaperColumn& column) {
  const Json found = read_measured(folder, column.study);
  const auto value = found.find(column.metric);
  if (value == found.end() || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

}  // namespace keel::cli
