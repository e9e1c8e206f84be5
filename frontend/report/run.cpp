#include "frontend/report/run.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/io/input_file.h"
#include "frontend/io/markup.h"
#include "frontend/io/metrics_log.h"
#include "frontend/train/config.h"
#include "frontend/train/run_log.h"
#include "frontend/train/run_result.h"

namespace keel::report {
namespace {

using Json = nlohmann::ordered_json;
using io::clean_text;

const std::string kModelKey = "run.model", kBackendKey = "run.backend";
// The speed of a line, and what earlier versions called it.
const std::string kRate = "items_per_second", kEarlierRate = "rows_per_second";

std::optional<double> number_at(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// The subject of a line: a split's evaluation, or a single update.
std::string split_of(const Json& line) {
  const auto split = line.find("split");
  return split != line.end() && split->is_string() ? clean_text(split->get<std::string>()) : "step";
}

Curve& curve_of(Run& run, const std::string& split, const std::string& quantity) {
  const auto found = std::ranges::find_if(
      run.curves, [&](const Curve& c) { return c.split == split && c.quantity == quantity; });
  if (found != run.curves.end()) return *found;
  return run.curves.emplace_back(Curve{split, quantity, {}, {}});
}

// A line's numbers, each a point of its curve; null is what JSON has for one that is not finite.
void take_line(Run& run, const Json& line) {
  const auto step = line["step"].get<double>();
  const std::string split = split_of(line);
  run.step = std::max(run.step, step);
  if (const auto seconds = number_at(line, "seconds")) run.seconds = seconds;
  for (const std::string& key : {kEarlierRate, kRate}) {
    if (const auto rate = number_at(line, key)) run.items_per_second = rate;
  }
  const auto epoch = number_at(line, "epoch");
  const bool is_later = step > (run.epochs.empty() ? 0 : run.epochs.back().first);
  if (split == "train" && epoch && is_later) run.epochs.emplace_back(step, *epoch);
  for (const auto& [written, value] : line.items()) {
    const std::string key = written == kEarlierRate ? kRate : written;
    const bool is_place = key == "step" || key == "epoch" || key == "seconds";
    if (is_place || !(value.is_number() || value.is_null())) continue;
    Curve& curve = curve_of(run, split, clean_text(key));
    curve.step.push_back(step);
    curve.value.push_back(value.is_null() ? NAN : value.get<double>());
  }
}

Values values_of(const Json& evaluation) {
  Values values;
  for (const auto& [key, value] : evaluation.items()) {
    const bool is_count = key == "rows" || key == "items";  // of what was measured, not a result
    if (!is_count && value.is_number()) values.emplace_back(clean_text(key), value);
  }
  return values;
}

void take_test(Run& run, const std::string& weights, const Json& evaluation) {
  run.test[weights] = values_of(evaluation);
  // A run that an earlier version finished does not say it.
  const auto counted = evaluation.find("counted");
  if (counted != evaluation.end()) run.counted[weights] = values_of(*counted);
}

void take_result(Run& run, const Json& result) {
  if (result.at("outcome") == "diverged") {
    run.outcome = Outcome::kDiverged;
    run.message = clean_text(result.at("message").get<std::string>());
    return;
  }
  run.outcome = Outcome::kFinished;
  run.step = result.at("steps").get<double>();
  // A run that an earlier version finished does not say it.
  if (const auto data = result.find("data"); data != result.end()) {
    run.data = clean_text(data->get<std::string>());
  }
  take_test(run, "last", result.at("test"));
  if (result.contains("best_test")) take_test(run, "best", result["best_test"]);
  if (result.contains("average_test")) take_test(run, "averaged", result["average_test"]);
  if (const auto seconds = number_at(result, "total_seconds")) run.seconds = seconds;
  // A run that was finished already when it was resumed trained on nothing.
  const auto rate = number_at(result, kRate);
  if (rate && *rate > 0) run.items_per_second = rate;
}

void read_result(Run& run, const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  try {
    take_result(run, Json::parse(io::InputFile(path).read_all()));
  } catch (const nlohmann::json::exception& problem) {
    fail(ErrorKind::kBadInput, "{}: expected the result of a run: {}", path.string(),
         problem.what());
  }
}

}  // namespace

std::string name_of(Outcome outcome) {
  if (outcome == Outcome::kFinished) return "finished";
  return outcome == Outcome::kDiverged ? "diverged" : "unfinished";
}

std::optional<double> epoch_at(const Run& run, double step) {
  return train::epoch_at(run.epochs, step);
}

std::string data_name(const Run& run) {
  const auto source = run.settings.find("data.source");
  return train::data_name(source == run.settings.end() ? "builtin" : source->second, run.data);
}

const Curve* find_curve(const Run& run, const std::string& split, const std::string& quantity) {
  const auto found = std::ranges::find_if(
      run.curves, [&](const Curve& c) { return c.split == split && c.quantity == quantity; });
  return found == run.curves.end() ? nullptr : &*found;
}

Settings read_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = train::RunFolder{folder}.config();
  const std::string toml = io::InputFile(path).read_all();
  Settings settings;
  try {
    for (const auto& [key, value] : train::read_settings(toml, path.string())) {
      settings[clean_text(key)] = clean_text(value);
    }
  } catch (const Error& error) {
    fail(ErrorKind::kBadInput, "{}", error.what());
  }
  return settings;
}

Run read_run(const std::filesystem::path& folder) {
  Run run;
  run.folder = folder;
  run.name = clean_text(folder.string());
  for (const auto& [key, value] : read_config(folder)) {
    const bool is_fact = key.starts_with("run.") && key != kBackendKey;
    (is_fact ? run.facts : run.settings)[key] = value;
  }
  const train::RunFolder files{folder};
  check(run.facts.contains(kModelKey), ErrorKind::kBadInput,
        "{}: expected a run's recipe, which has a table [run] with model = ...",
        files.config().string());
  run.model = run.facts[kModelKey];
  for (const Json& line : io::read_metrics(files.metrics())) take_line(run, line);
  read_result(run, files.result());
  return run;
}

}  // namespace keel::report
