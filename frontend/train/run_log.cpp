#include "frontend/train/run_log.h"

#include <cctype>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "frontend/io/plot.h"
#include "frontend/io/plot_text.h"
#include "frontend/train/epoch_ends.h"

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

// The time so far, from the last line that has one.
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

// How a split is called, and the colour that it has in every plot.
struct SplitLook {
  std::string name;
  std::size_t style;
};

SplitLook look_of(const std::string& split) {
  if (split == "train") return {"training", 0};
  if (split == "valid") return {"validation", 1};
  if (split == "test") return {"test", 2};
  return {split, 3};
}

EpochEnds epoch_ends(const std::vector<nlohmann::ordered_json>& lines) {
  EpochEnds ends;
  for (const auto& line : lines) {
    if (!is_point(line, "step") || line["split"] != "train") continue;
    const double step = line["step"], epoch = line["epoch"];
    if (step > (ends.empty() ? 0 : ends.back().first)) ends.emplace_back(step, epoch);
  }
  return ends;
}

// Values of `key` by the "split" of a line, along epochs or, without an end of one, updates.
std::vector<io::PlotSeries> series_by_split(const std::vector<nlohmann::ordered_json>& lines,
                                            const std::string& key, const EpochEnds& ends) {
  std::map<std::string, io::PlotSeries> series;
  for (const auto& line : lines) {
    if (!is_point(line, key)) continue;
    io::PlotSeries& s = series[line["split"].get<std::string>()];
    const double step = line["step"];
    s.x.push_back(epoch_at(ends, step).value_or(step));
    s.y.push_back(line[key].get<double>());
  }
  std::vector<io::PlotSeries> result;
  for (auto& [split, s] : series) {
    s.name = look_of(split).name;
    s.style = look_of(split).style;
    result.push_back(std::move(s));
  }
  // A line that stands alone needs no dashes to be told from others.
  if (result.size() == 1) *result[0].style += io::kPlotColours * (*result[0].style % 4);
  return result;
}

// "Validation error"; "Error" where several splits have it, which the legend names.
std::string heading_of(const std::string& name, const std::vector<io::PlotSeries>& series) {
  std::string heading = io::words_of_quantity(name);
  if (series.size() == 1) heading = series[0].name + " " + heading;
  heading[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(heading[0])));
  return heading;
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
  for (const auto& [name, value] : s.monitored) values[name] = value;
  write(s.step, std::move(values));
  scalar("step/loss", s.step, s.loss);
  scalar("step/lr", s.step, s.lr);
  scalar("step/grad_norm", s.step, s.grad_norm);
  for (const auto& [name, value] : s.monitored) scalar("step/" + name, s.step, value);
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
                   {"skipped", u.skipped},
                   {"where", u.where}}}});
}

void RunLog::epoch(std::int64_t step, std::int64_t epoch, double loss) {
  write(step, {{"epoch", epoch}, {"split", "train"}, {"loss", loss}});
  scalar("train/loss", step, loss);
}

void RunLog::plot(const Subject& subject, const std::vector<task::MetricInfo>& metrics) const {
  if (!metrics_) return;
  const auto lines = io::read_metrics(folder_.metrics());
  const EpochEnds ends = epoch_ends(lines);
  const auto draw = [&](const task::MetricInfo& info, bool is_loss) {
    std::vector<io::PlotSeries> series = series_by_split(lines, info.name, ends);
    const std::string words = io::words_of_quantity(info.name);
    std::string caption = heading_of(info.name, series) + " of " + subject.name;
    if (!subject.caption.empty()) caption += ". " + subject.caption;
    io::write_plot(folder_.plot(info.name),
                   {.title = "",
                    .x_label = ends.empty() ? "update" : "epoch",
                    .y_label = info.unit.empty() ? words : words + ", " + info.unit,
                    .log_y = is_loss,
                    .series = std::move(series),
                    .from_zero = info.unit == "%" && !info.higher_is_better,
                    .caption = caption,
                    .about = caption});
  };
  draw({.name = "loss", .unit = ""}, true);
  for (const task::MetricInfo& info : metrics) draw(info, false);
}

}  // namespace keel::train
