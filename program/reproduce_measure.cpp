#include "program/reproduce_measure.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"
#include "frontend/io/input_file.h"
#include "frontend/train/run_folder.h"
#include "program/common.h"
#include "program/reproduce_choice.h"
#include "studies/study.h"
#include "studies/transfer_data.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path file_of(const fs::path& folder, const std::string& study) {
  return folder / (study + ".json");
}

fs::path file_at(const fs::path& folder, const std::string& study, std::int64_t step) {
  return folder / fmt::format("{}-{}.json", study, step);
}

// The checkpoints of a training by their updates: "checkpoints/step-00000050.safetensors".
std::map<std::int64_t, fs::path> checkpoints_of(const fs::path& folder) {
  std::map<std::int64_t, fs::path> found;
  const fs::path checkpoints = train::RunFolder{folder}.checkpoints();
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints, error)) {
    const std::string stem = entry.path().stem().string(), start = "step-";
    if (!stem.starts_with(start) || entry.path().extension() != ".safetensors") continue;
    std::int64_t step = 0;
    const char* last = stem.data() + stem.size();
    const auto [end, bad] = std::from_chars(stem.data() + start.size(), last, step);
    if (bad == std::errc() && end == last) found[step] = entry.path();
  }
  return found;
}

// A damaged file is measured again.
Json read_measured(const fs::path& path) {
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

// The columns "value" of a study of runs, by what stands before them: what was measured.
Json numbers_of(const study::Result& result) {
  Json numbers = Json::object();
  for (const study::Table& table : result.tables) {
    const std::vector<std::string>& head = table.rows.front();
    const auto place = std::size_t(std::ranges::find(head, "value") - head.begin());
    if (place == 0 || place == head.size()) continue;
    for (std::size_t i = 1; i < table.rows.size(); ++i) {
      const std::vector<std::string>& row = table.rows[i];
      if (const auto value = number_of(row[place])) numbers[row[place - 1]] = *value;
    }
  }
  return numbers;
}

// A study that measures a checkpoint, or the best one of a run's folder, and writes to a file.
struct Measuring {
  std::string study, checkpoint;
  fs::path file;
};

// Unless the file has the metric.
void measure(const Measuring& what, const std::string& metric, const ReproduceArgs& args) {
  if (read_measured(what.file).contains(metric)) return;
  const auto backend = make_backend(args.run);
  study::Options options{*backend};
  options.data = args.run.data;
  options.runs = {checkpoint_path(what.checkpoint).string()};
  options.quiet = false;
  const study::Result result = study::find_study(what.study).run(options);
  io::write_file_atomically(what.file, numbers_of(result).dump(2) + "\n");
}

std::optional<double> metric_in(const fs::path& file, const study::PaperColumn& column) {
  const Json found = read_measured(file);
  const auto value = found.find(column.metric);
  if (value == found.end() || !value->is_number()) return std::nullopt;
  return value->get<double>();
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
                                     const Trial& trial) {
  std::vector<std::string> words{"study", column.study, "--run", trial.folder.string()};
  if (!trial.data.empty()) words.insert(words.end(), {"--data", trial.data});
  append_backend(words, args.run);
  return words;
}

void measure_trials(const Plan& plan, const ReproduceArgs& args) {
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    for (std::size_t j = 0; j < plan.table.columns.size(); ++j) {
      const study::PaperColumn& column = plan.table.columns[j];
      if (column.study.empty()) continue;
      for (const std::size_t place : plan.cells[i][j].trials) {
        const Trial& trial = plan.trials[place];
        if (trial.state != TrialState::kFinished) continue;
        measure({column.study, trial.folder, file_of(trial.folder, column.study)}, column.metric,
                args);
        if (!plan.table.is_figure) continue;
        for (const auto& [step, checkpoint] : checkpoints_of(trial.folder)) {
          measure({column.study, checkpoint, file_at(trial.folder, column.study, step)},
                  column.metric, args);
        }
      }
    }
  }
}

std::optional<double> measured_value(const fs::path& folder, const study::PaperColumn& column) {
  return metric_in(file_of(folder, column.study), column);
}

std::map<std::int64_t, double> measured_along(const fs::path& folder,
                                              const study::PaperColumn& column) {
  std::map<std::int64_t, double> found;
  for (const auto& [step, checkpoint] : checkpoints_of(folder)) {
    if (const auto value = metric_in(file_at(folder, column.study, step), column)) {
      found[step] = *value;
    }
  }
  return found;
}

}  // namespace keel::cli
