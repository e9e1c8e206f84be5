#include "frontend/train/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>

namespace keel::train {
namespace {

static_assert(all_documented<TrainOptions>() && all_documented<DataOptions>());

// A setting of earlier versions, and what it is called now.
struct FormerSetting {
  std::string_view key, value, key_now, value_now;
};
constexpr FormerSetting kFormerSettings[] = {
    {"model.features", "made_up", "model.features", "synthetic"},
    {"model.pre_norm", "true", "model.place", "pre"},
    {"model.pre_norm", "false", "model.place", "post"}};

// Numbers and truth values stand bare; everything else is quoted.
template <class T>
std::string toml_field(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    std::ostringstream quoted;
    quoted << toml::value<std::string>(value);
    return quoted.str();
  } else if constexpr (std::is_same_v<T, Period> || std::is_same_v<T, std::vector<std::int64_t>> ||
                       Choice<T>) {
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

struct OtherName {
  std::string_view other, here;
};

constexpr std::array<OtherName, 24> kOtherNames = {{{"learning_rate", "lr"},
                                                    {"lrate", "lr"},
                                                    {"step_size", "lr"},
                                                    {"batch_size", "batch"},
                                                    {"bs", "batch"},
                                                    {"batchsize", "batch"},
                                                    {"num_epochs", "epochs"},
                                                    {"epoch", "epochs"},
                                                    {"n_epochs", "epochs"},
                                                    {"steps", "max_steps"},
                                                    {"max_updates", "max_steps"},
                                                    {"updates", "max_steps"},
                                                    {"iterations", "max_steps"},
                                                    {"warmup_steps", "warmup"},
                                                    {"wd", "weight_decay"},
                                                    {"l2", "weight_decay"},
                                                    {"opt", "optimizer"},
                                                    {"scheduler", "schedule"},
                                                    {"lr_scheduler", "schedule"},
                                                    {"grad_clip", "clip_limit"},
                                                    {"clip_norm", "clip_limit"},
                                                    {"dtype", "compute"},
                                                    {"precision", "compute"},
                                                    {"early_stopping", "patience"}}};

// The known key that is meant by one that is unknown: with another section or none, by the name of
// another program, or else the nearest.
std::string meant_key(std::string_view key, const std::vector<std::string>& known) {
  const std::string_view name = key.substr(key.find('.') + 1), here = usual_name(name);
  for (const std::string_view wanted : {name, here}) {
    const auto found = std::ranges::find_if(known, [&](const std::string& candidate) {
      return !wanted.empty() && candidate.substr(candidate.find('.') + 1) == wanted;
    });
    if (found != known.end()) return *found;
  }
  return nearest(key, known);
}

}  // namespace

std::string_view usual_name(std::string_view name) {
  const auto* found = std::ranges::find(kOtherNames, name, &OtherName::other);
  return found == kOtherNames.end() ? std::string_view() : found->here;
}

void TrainOptions::validate() const {
  try {
    check_ranges(*this);
    check(average_last <= keep_checkpoints, ErrorKind::kUsage,
          "average_last: expected 0 to keep_checkpoints, got {}", average_last);
    const bool is_lazy = embedding_updates == optim::EmbeddingUpdates::kLazy;
    check(!is_lazy || accumulate == 1, ErrorKind::kUsage,
          "embedding_updates: expected exact with accumulate > 1, got lazy");
    check(!is_lazy || shards == 1, ErrorKind::kUsage,
          "embedding_updates: expected exact with shards > 1, got lazy");
    optim::validate(optimizer_options());
    optim::validate(schedule_options());
    optim::validate(clip_options());
  } catch (const Error& error) {
    fail(ErrorKind::kUsage, "train.{}", error.what());
  }
}

optim::OptimizerOptions TrainOptions::optimizer_options() const {
  return {optimizer,
          momentum,
          weight_decay,
          nesterov,
          beta1,
          beta2,
          eps,
          decay == DecayedParameters::kAll,
          embedding_updates};
}

optim::ScheduleOptions TrainOptions::schedule_options() const {
  return {schedule, warmup, step_every, step_factor, min_factor, warmup_init_lr / lr, milestones};
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
  try {
    check_ranges(*this);
  } catch (const Error& error) {
    fail(ErrorKind::kUsage, "data.{}", error.what());
  }
}

task::DataRequest DataOptions::request() const {
  std::error_code unknown;
  check(source == "builtin" || std::filesystem::exists(source, unknown), ErrorKind::kIo,
        "{}: no such folder of data", source);
  return {source, train_rows, static_cast<std::uint64_t>(seed)};
}

task::OptionValues read_settings(std::string_view toml, const std::string& where) {
  task::OptionValues settings;
  for (const auto& [section, node] : parse_toml(toml, where)) {
    const std::string name(section.str());
    check(node.is_table(), ErrorKind::kUsage, "{}: expected only tables, got {}", where, name);
    for (const auto& [key, value] : *node.as_table()) {
      const std::string full = name + "." + std::string(key.str());
      settings.emplace_back(full, scalar_text(value, where + ": " + full));
    }
  }
  return settings;
}

std::vector<OptionFact> Config::facts() const {
  std::vector<OptionFact> all;
  const auto append = [&](const std::string& section, const std::vector<OptionFact>& facts) {
    for (OptionFact fact : facts) {
      fact.name = section + fact.name;
      all.push_back(std::move(fact));
    }
  };
  append("model.", task_->facts());
  append("data.", option_facts(data_));
  append("train.", option_facts(train_));
  return all;
}

std::vector<std::string> Config::keys() const {
  std::vector<std::string> names;
  for (const OptionFact& fact : facts()) names.push_back(fact.name);
  return names;
}

void Config::set(std::string_view key, std::string_view value) {
  for (const FormerSetting& former : kFormerSettings) {
    if (key != former.key || value != former.value) continue;
    key = former.key_now;
    value = former.value_now;
    break;
  }
  const std::vector<std::string> known = keys();
  check(std::ranges::find(known, key) != known.end(), ErrorKind::kUsage,
        "key '{}' is unknown; nearest: '{}'", key, meant_key(key, known));
  const std::string_view section = key.substr(0, key.find('.'));
  const std::string_view name = key.substr(section.size() + 1);
  if (section == "model") return task_->set_option(name, value);
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
  task_->validate();
}

std::string Config::to_toml(const task::OptionValues& run) const {
  std::string text =
      fmt::format("# The resolved recipe of a run of {}.\n\n[model]\n", task_->name());
  for (const auto& [name, value] : task_->options()) {
    text += fmt::format("{} = {}\n", name, is_bare(value) ? value : toml_field(value));
  }
  text += "\n[data]\n" + toml_table(data_) + "\n[train]\n" + toml_table(train_) + "\n[run]\n";
  text += fmt::format("model = {}\n", toml_field(std::string(task_->name())));
  for (const auto& [name, value] : run) text += fmt::format("{} = {}\n", name, toml_field(value));
  return text;
}

}  // namespace keel::train
