#include "frontend/train/run_log.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "frontend/io/plot.h"

namespace keel::train {
namespace {

double wall_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::filesystem::path made(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check(!error, ErrorKind::kIo, "{}: cannot make this folder: {}", folder.string(),
        error.message());
  return folder;
}

// Whether a line, which another program may have changed, says what `key` was at which epoch.
bool is_point(const nlohmann::ordered_json& line, const std::string& key) {
  const auto number = [&](const std::string& k) { return line.contains(k) && line[k].is_number(); };
  return line.contains("split") && line["split"].is_string() && number("epoch") && number(key);
}

// Values of `key` over epochs, by the "split" of a line.
std::vector<io::PlotSeries> series_by_split(const std::vector<nlohmann::ordered_json>& lines,
                                            const std::string& key) {
  std::map<std::string, io::PlotSeries> series;
  for (const auto& line : lines) {
    if (!is_point(line, key)) continue;
    io::PlotSeries& s = series[line["split"].get<std::string>()];
    s.x.push_back(line["epoch"].get<double>());
    s.y.push_back(line[key].get<double>());
  }
  std::vector<io::PlotSeries> result;
  for (auto& [split, s] : series) {
    s.name = split;
    result.push_back(std::move(s));
  }
  return result;
}

}  // namespace

RunLog::RunLog(const RunFolder& folder, std::optional<std::int64_t> resumed_at)
    : folder_(folder),
      metrics_((made(folder.path), folder.metrics()), resumed_at.value_or(-1)),
      events_(made(folder.events()), wall_time(), resumed_at.value_or(-1) + 1) {}

void RunLog::scalar(const std::string& tag, std::int64_t step, double value) {
  events_.add_scalar(tag, step, static_cast<float>(value), wall_time());
}

void RunLog::step(const Step& s) {
  nlohmann::ordered_json values{{"epoch", s.epoch},
                                {"loss", s.loss},
                                {"lr", s.lr},
                                {"grad_norm", s.grad_norm},
                                {"rows_per_second", s.rows_per_second}};
  for (const auto& [name, value] : s.watched) values[name] = value;
  metrics_.write(s.step, values);
  scalar("step/loss", s.step, s.loss);
  scalar("step/lr", s.step, s.lr);
  scalar("step/grad_norm", s.step, s.grad_norm);
  for (const auto& [name, value] : s.watched) scalar("step/" + name, s.step, value);
}

void RunLog::evaluation(std::int64_t step, std::int64_t epoch, const std::string& split,
                        const Evaluation& e) {
  metrics_.write(step, {{"epoch", epoch}, {"split", split}, {"loss", e.loss}, {"error", e.error}});
  scalar(split + "/loss", step, e.loss);
  scalar(split + "/error", step, e.error);
}

void RunLog::epoch(std::int64_t step, std::int64_t epoch, double loss) {
  metrics_.write(step, {{"epoch", epoch}, {"split", "train"}, {"loss", loss}});
  scalar("train/loss", step, loss);
}

void RunLog::plot(const std::string& title) const {
  const auto lines = io::read_metrics(folder_.metrics());
  io::write_plot(folder_.loss_plot(), {.title = title,
                                       .x_label = "epoch",
                                       .y_label = "loss",
                                       .log_y = true,
                                       .series = series_by_split(lines, "loss")});
  io::write_plot(folder_.error_plot(), {.title = title,
                                        .x_label = "epoch",
                                        .y_label = "error rate",
                                        .log_y = false,
                                        .series = series_by_split(lines, "error")});
}

}  // namespace keel::train
