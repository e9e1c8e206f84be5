#include "frontend/train/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

namespace keel::train {
namespace {

void expect(bool holds, std::string_view key, std::string_view expected, double got) {
  check(holds && std::isfinite(got), ErrorKind::kUsage, "train.{}: expected {}, got {}", key,
        expected, got);
}

template <class Options>
void append_names(std::vector<std::string>& names, const std::string& section) {
  std::apply([&](const auto&... f) { (names.push_back(section + std::string(f.name)), ...); },
             Options::fields());
}

// Numbers and truth values stand bare; everything else is quoted.
template <class T>
std::string toml_field(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    std::ostringstream quoted;
    quoted << toml::value<std::string>(value);
    return quoted.str();
  } else if constexpr (std::is_same_v<T, Period> || Choice<T>) {
    return '"' + attr_text(value) + '"';
  } else {
    return attr_text(value);
  }
}

// Whether the text of an option is that of a number or truth value, spelled as it is read back.
bool is_bare(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc{} && std::isfinite(number) && attr_text(number) == text;
  return is_number || text == "true" || text == "false";
}

template <class Options>
std::string toml_table(const Options& options) {
  std::string text;
  const auto append = [&](const auto& f) {
    text += fmt::format("{} = {}\n", f.name, toml_field(options.*f.member));
  };
  std::apply([&](const auto&... f) { (append(f), ...); }, Options::fields());
  return text;
}

// A scalar of a recipe as the text that set() reads.
std::string scalar_text(const toml::node& node, const std::string& key) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  fail(ErrorKind::kUsage, "{}: expected a text, number or truth value", key);
}

toml::table parse_toml(std::string_view text, const std::string& where) {
  // The library recurses for every dot of a key, however many there are.
  constexpr std::ptrdiff_t kMaxDots = 1000;
  const std::ptrdiff_t dots = std::ranges::count(text, '.');
  check(dots <= kMaxDots, ErrorKind::kUsage, "{}: expected at most {} dots, got {}", where,
        kMaxDots, dots);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::kUsage, "{}:{}: {}", where, error.source().begin.line, error.description());
  }
}

}  // namespace

void TrainOptions::validate() const {
  expect(batch >= 1, "batch", ">= 1", double(batch));
  // Kernels and checkpoints count in 32 bits.
  expect(epochs >= 1 && epochs <= 2147483647, "epochs", ">= 1 and < 2^31", double(epochs));
  expect(max_steps >= 0, "max_steps", ">= 0", double(max_steps));
  expect(accumulate >= 1, "accumulate", ">= 1", double(accumulate));
  expect(seed >= 0, "seed", ">= 0", double(seed));
  expect(lr > 0 && lr < 1e6, "lr", "in (0, 1e6)", lr);
  expect(warmup_init_lr >= 0, "warmup_init_lr", ">= 0", warmup_init_lr);
  expect(stop_min_lr >= 0, "stop_min_lr", ">= 0", stop_min_lr);
  expect(momentum >= 0 && momentum < 1, "momentum", "in [0, 1)", momentum);
  expect(weight_decay >= 0, "weight_decay", ">= 0", weight_decay);
  expect(beta1 >= 0 && beta1 < 1, "beta1", "in [0, 1)", beta1);
  expect(beta2 >= 0 && beta2 < 1, "beta2", "in [0, 1)", beta2);
  expect(eps > 0, "eps", "> 0", eps);
  expect(eval_every.n >= 1, "eval_every", ">= 1", double(eval_every.n));
  expect(test_every.n >= 0, "test_every", ">= 0", double(test_every.n));
  expect(patience >= 0, "patience", ">= 0", double(patience));
  expect(checkpoint_every >= 0, "checkpoint_every", ">= 0", double(checkpoint_every));
  expect(keep_checkpoints >= 1 && keep_checkpoints <= 1000000, "keep_checkpoints",
         ">= 1 and <= 1000000", double(keep_checkpoints));
  expect(average_last >= 0 && average_last <= keep_checkpoints, "average_last",
         "0 to keep_checkpoints", double(average_last));
  expect(log_every >= 1, "log_every", ">= 1", double(log_every));
  expect(nonfinite_limit >= 1, "nonfinite_limit", ">= 1", double(nonfinite_limit));
  try {
    optim::validate(optimizer_options());
    optim::validate(schedule_options());
    optim::validate(clip_options());
  } catch (const Error& error) {
    fail(ErrorKind::kUsage, "train.{}", error.what());
  }
}

optim::OptimizerOptions TrainOptions::optimizer_options() const {
  return {optimizer, momentum, weight_decay, nesterov,
          beta1,     beta2,    eps,          decay == DecayedParameters::kAll};
}

optim::ScheduleOptions TrainOptions::schedule_options() const {
  return {schedule, warmup, step_every, step_factor, min_factor, warmup_init_lr / lr};
}

double TrainOptions::rate(std::int64_t step, std::int64_t total) const {
  return lr * optim::schedule_factor(schedule_options(), step, total);
}

void DataOptions::validate() const {
  check(!source.empty(), ErrorKind::kUsage, "data.source: expected 'builtin' or a folder");
  // TOML holds nothing else, and a resumed run would look for another folder.
  const toml::table read_back = parse_toml(toml_table(*this), "data");
  check(read_back["source"].value<std::string>() == source, ErrorKind::kUsage,
        "data.source: expected UTF-8, got {:?}", source);
  check(train_rows >= 0, ErrorKind::kUsage, "data.train_rows: expected >= 0, got {}", train_rows);
  check(seed >= 0, ErrorKind::kUsage, "data.seed: expected >= 0, got {}", seed);
}

task::OptionValues read_settings(std::string_view toml, const std::string& where) {
  task::OptionValues settings;
  for (const auto& [section, node] : parse_toml(toml, where)) {
    const std::string name(section.str());
    check(node.is_table(), ErrorKind::kUsage, "{}: expected tables alone, got {}", where, name);
    for (const auto& [key, value] : *node.as_table()) {
      const std::string full = name + "." + std::string(key.str());
      settings.emplace_back(full, scalar_text(value, where + ": " + full));
    }
  }
  return settings;
}

std::vector<std::string> Config::keys() const {
  std::vector<std::string> names;
  append_names<TrainOptions>(names, "train.");
  append_names<DataOptions>(names, "data.");
  for (const auto& [name, value] : model_->options()) names.push_back("model." + name);
  return names;
}

void Config::set(std::string_view key, std::string_view value) {
  const std::vector<std::string> known = keys();
  check(std::ranges::find(known, key) != known.end(), ErrorKind::kUsage, "key {}",
        unknown_name(key, known));
  const std::string_view section = key.substr(0, key.find('.'));
  const std::string_view name = key.substr(section.size() + 1);
  if (section == "model") return model_->set_option(name, value);
  try {
    section == "train" ? set_field(train_, name, value) : set_field(data_, name, value);
  } catch (const Error& error) {
    fail(ErrorKind::kUsage, "{}: {}", key, error.what());
  }
}

void Config::apply_toml(std::string_view toml, const std::string& where) {
  for (const auto& [section, node] : parse_toml(toml, where)) {
    const std::string name(section.str());
    if (name == "run") continue;
    const std::vector<std::string> sections{"model", "train", "data"};
    const bool known = std::ranges::find(sections, name) != sections.end() && node.is_table();
    check(known, ErrorKind::kUsage, "{}: table {}", where, unknown_name(name, sections));
    for (const auto& [key, value] : *node.as_table()) {
      const std::string full = name + "." + std::string(key.str());
      try {
        set(full, scalar_text(value, full));
      } catch (const Error& error) {
        fail(ErrorKind::kUsage, "{}:{}: {}", where, value.source().begin.line, error.what());
      }
    }
  }
}

void Config::validate() const {
  train_.validate();
  data_.validate();
  model_->validate();
}

std::string Config::to_toml(const task::OptionValues& run) const {
  std::string text =
      fmt::format("# The resolved recipe of a run of {}.\n\n[model]\n", model_->name());
  for (const auto& [name, value] : model_->options()) {
    text += fmt::format("{} = {}\n", name, is_bare(value) ? value : toml_field(value));
  }
  text += "\n[data]\n" + toml_table(data_) + "\n[train]\n" + toml_table(train_) + "\n[run]\n";
  text += fmt::format("model = {}\n", toml_field(std::string(model_->name())));
  for (const auto& [name, value] : run) text += fmt::format("{} = {}\n", name, toml_field(value));
  return text;
}

}  // namespace keel::train
