#include "frontend/train/run_result.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"

namespace keel::train {
namespace {

using Json = nlohmann::ordered_json;

void write_json(const RunFolder& folder, const Json& json) {
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  io::write_file_atomically(folder.result(), text + "\n");
}

}  // namespace

Json evaluation_json(const Evaluation& evaluation) {
  Json json{{"loss", evaluation.loss}};
  for (const Measured& m : evaluation.metrics) json[m.info.name] = m.value;
  json["rows"] = evaluation.rows;
  if (evaluation.items > double(evaluation.rows)) json["items"] = evaluation.items;
  for (const Measured& m : evaluation.metrics) {
    // A share is known as well as so many can tell it.
    if (m.info.unit == "%" && m.count > 0) json["counted"][m.info.name] = m.count;
  }
  return json;
}

Json summary_json(const Summary& s) {
  Json json{{"data", s.data},
            {"steps", s.state.step},
            {"epochs", s.state.epoch},
            {"stopped_early", !s.stopped_because.empty()},
            {"train_loss", s.train_loss},
            {"best_valid", s.state.best},
            {"best_step", s.state.best_step},
            {"skipped", s.state.skipped},
            {"valid", evaluation_json(s.valid)},
            {"test", evaluation_json(s.test)}};
  if (!s.stopped_because.empty()) json["stopped_because"] = s.stopped_because;
  if (s.best_test) json["best_test"] = evaluation_json(*s.best_test);
  if (s.average_test) json["average_test"] = evaluation_json(*s.average_test);
  json["seconds"] = s.seconds;
  json["total_seconds"] = s.total_seconds;
  json["items_per_second"] = s.items_per_second;
  return json;
}

void write_result(const RunFolder& folder, const Summary& summary) {
  Json json{{"outcome", "finished"}};
  json.update(summary_json(summary));
  write_json(folder, json);
}

void write_divergence(const RunFolder& folder, std::string_view message) {
  write_json(folder, {{"outcome", "diverged"}, {"message", message}});
}

Json result_of(const RunFolder& folder) {
  std::ifstream file(folder.result());
  Json json = Json::parse(file, nullptr, false);
  return json.is_discarded() ? Json() : json;
}

bool is_finished(const RunFolder& folder) {
  const Json json = result_of(folder);
  return json.is_object() && json.value("outcome", Json()) == "finished";
}

void remove_result(const RunFolder& folder) {
  std::error_code error;
  std::filesystem::remove(folder.result(), error);
  check(!error, ErrorKind::kIo, "{}: cannot remove it: {}", folder.result().string(),
        error.message());
}

std::string data_name(const std::string& source, const std::string& rows) {
  if (source != "builtin") {
    // "data/" has no file name of its own.
    return (std::filesystem::path(source) / "").parent_path().filename().string();
  }
  std::string name = rows.substr(0, rows.find(','));
  const std::string part = " train";
  if (name.ends_with(part)) name.resize(name.size() - part.size());
  return name.empty() ? "built-in data" : name;
}

}  // namespace keel::train
