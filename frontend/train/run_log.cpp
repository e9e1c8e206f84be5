#include "frontend/train/run_log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
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

// What the last line that says so gives as the time so far.
double seconds_logged(const std::vector<nlohmann::ordered_json>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto seconds = line->find("seconds");
    if (seconds != line->end() && seconds->is_number()) return seconds->get<double>();
  }
  return 0;
}

// Whether a line, which another program may have changed, says what `key` was at which epoch.
bool is_point(const nlohmann::ordered_json& line, const std::string& key) {
  const auto number = [&](const std::string& k) { return line.contains(k) && line[k].is_number(); };
  return line.contains("split") && line["split"].is_string() && number("epoch") && number(key);
}

// A split keeps its line's colour, whichever others there are.
std::size_t style_of(const std::string& split) {
  return split == "train" ? 0 : split == "valid" ? 1 : split == "test" ? 2 : 3;
}

// Values of `key` over epochs or steps (`along`), by the "split" of a line.
std::vector<io::PlotSeries> series_by_split(const std::vector<nlohmann::ordered_json>& lines,
                                            const std::string& key, const std::string& along) {
  std::map<std::string, io::PlotSeries> series;
  for (const auto& line : lines) {
    if (!is_point(line, key)) continue;
    io::PlotSeries& s = series[line["split"].get<std::string>()];
    s.x.push_back(line[along].get<double>());
    s.y.push_back(line[key].get<double>());
  }
  std::vector<io::PlotSeries> result;
  for (auto& [split, s] : series) {
    s.name = split;
    s.style = style_of(split);
    result.push_back(std::move(s));
  }
  return result;
}

// Whether a split was measured more than once in an epoch.
bool has_points_within_epochs(const std::vector<io::PlotSeries>& series) {
  return std::ranges::any_of(series, [](const io::PlotSeries& s) {
    return std::ranges::adjacent_find(s.x, std::ranges::greater_equal{}) != s.x.end();
  });
}

}  // namespace

RunLog::RunLog(const RunFolder& folder, std::optional<std::int64_t> resumed_at)
    : folder_(folder),
      metrics_(std::in_place, (made(folder.path), folder.metrics()), resumed_at.value_or(-1)),
      events_(std::in_place, made(folder.events_folder()), wall_time(),
              resumed_at.value_or(-1) + 1),
      seconds_before_(seconds_logged(io::read_metrics(folder.metrics()))) {}

double RunLog::seconds() const {
  const auto now = std::chrono::steady_clock::now();
  return seconds_before_ + std::chrono::duration<double>(now - start_).count();
}

void RunLog::write(std::int64_t step, nlohmann::ordered_json values) {
  if (!metrics_) return;
  values["seconds"] = std::round(1e3 * seconds()) / 1e3;
  metrics_->write(step, values);
}

void RunLog::scalar(const std::string& tag, std::int64_t step, double value) {
  if (events_) events_->add_scalar(tag, step, static_cast<float>(value), wall_time());
}

void RunLog::step(const Step& s) {
  nlohmann::ordered_json values{{"epoch", s.epoch},
                                {"loss", s.loss},
                                {"lr", s.lr},
                                {"grad_norm", s.grad_norm},
                                {"items_per_second", s.items_per_second}};
  for (const auto& [name, value] : s.watched) values[name] = value;
  write(s.step, std::move(values));
  scalar("step/loss", s.step, s.loss);
  scalar("step/lr", s.step, s.lr);
  scalar("step/grad_norm", s.step, s.grad_norm);
  for (const auto& [name, value] : s.watched) scalar("step/" + name, s.step, value);
}

void RunLog::evaluation(std::int64_t step, std::int64_t epoch, const std::string& split,
                        const Evaluation& e) {
  nlohmann::ordered_json values{{"epoch", epoch}, {"split", split}, {"loss", e.loss}};
  for (const Measured& m : e.metrics) values[m.info.name] = m.value;
  write(step, std::move(values));
  scalars(split, step, e);
}

void RunLog::scalars(const std::string& tag, std::int64_t step, const Evaluation& e) {
  scalar(tag + "/loss", step, e.loss);
  for (const Measured& m : e.metrics) scalar(tag + "/" + m.info.name, step, m.value);
}

void RunLog::settings(const task::OptionValues& settings) {
  if (events_) events_->add_settings(settings, wall_time());
}

void RunLog::result(std::int64_t step, const std::string& what, const Evaluation& e) {
  scalars(what, step, e);
}

void RunLog::end(bool finished) {
  if (events_) events_->add_end(finished, wall_time());
}

void RunLog::nonfinite(const NonFiniteUpdate& u) {
  write(u.step, {{"epoch", u.epoch},
                 {"nonfinite",
                  {{"action", u.action},
                   {"loss", u.loss},
                   {"grad_norm", u.grad_norm},
                   {"left_out", u.left_out},
                   {"where", u.where}}}});
}

void RunLog::epoch(std::int64_t step, std::int64_t epoch, double loss) {
  write(step, {{"epoch", epoch}, {"split", "train"}, {"loss", loss}});
  scalar("train/loss", step, loss);
}

void RunLog::plot(const std::string& title, const std::vector<task::MetricInfo>& metrics) const {
  if (!metrics_) return;
  const auto lines = io::read_metrics(folder_.metrics());
  const auto draw = [&](const std::string& name, const std::string& label, bool log_y) {
    std::string along = "epoch";
    std::vector<io::PlotSeries> series = series_by_split(lines, name, along);
    if (has_points_within_epochs(series)) series = series_by_split(lines, name, along = "step");
    io::write_plot(folder_.plot(name), {.title = title,
                                        .x_label = along,
                                        .y_label = label,
                                        .log_y = log_y,
                                        .series = std::move(series)});
  };
  draw("loss", "loss", true);
  for (const task::MetricInfo& info : metrics) {
    draw(info.name, info.unit.empty() ? info.name : info.name + ", " + info.unit, false);
  }
}

}  // namespace keel::train
