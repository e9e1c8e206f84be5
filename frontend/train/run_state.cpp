#include "frontend/train/run_state.h"

#include <charconv>

namespace keel::train {
namespace {

const std::string& metadata(const TensorFile& file, const std::string& key,
                            const std::string& where) {
  const auto found = file.metadata.find(key);
  check(found != file.metadata.end(), ErrorKind::kBadInput,
        "{}: expected a checkpoint of keel, its metadata has no '{}'", where, key);
  return found->second;
}

template <class T>
T number(const TensorFile& file, const std::string& key, const std::string& where) {
  const std::string& text = metadata(file, key, where);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc{} && end == text.data() + text.size(), ErrorKind::kBadInput,
        "{}: metadata '{}': expected a number, got '{}'", where, key, text);
  return value;
}

}  // namespace

TensorFile to_checkpoint(const RunState& state, const Config& config, const Variables& variables) {
  TensorFile file;
  for (const auto& [name, variable] : variables.all()) {
    file.tensors.emplace(name, variables.read(name, true));
  }
  file.metadata = {{"model", std::string(config.model().name())},
                   {"recipe", config.to_toml()},
                   {"step", fmt::format("{}", state.step)},
                   {"epoch", fmt::format("{}", state.epoch)},
                   {"batch", fmt::format("{}", state.batch)},
                   {"epoch_loss", fmt::format("{}", state.epoch_loss)},
                   {"best_error", fmt::format("{}", state.best_error)},
                   {"best_step", fmt::format("{}", state.best_step)},
                   {"evaluations_since_best", fmt::format("{}", state.evaluations_since_best)}};
  return file;
}

RunState from_checkpoint(const TensorFile& file, const std::string& where, const Config& config,
                         Variables& variables) {
  const std::string& model = metadata(file, "model", where);
  check(model == config.model().name(), ErrorKind::kBadInput,
        "{}: expected a checkpoint of {}, got one of {}", where, config.model().name(), model);
  load_variables(file, where, variables);
  for (const auto& [name, tensor] : file.tensors) {
    check(variables.all().contains(name), ErrorKind::kBadInput,
          "{}: tensor {} does not belong to this run", where, name);
  }
  RunState state;
  state.step = number<std::int64_t>(file, "step", where);
  state.epoch = number<std::int64_t>(file, "epoch", where);
  state.batch = number<std::int64_t>(file, "batch", where);
  state.epoch_loss = number<double>(file, "epoch_loss", where);
  state.best_error = number<double>(file, "best_error", where);
  state.best_step = number<std::int64_t>(file, "best_step", where);
  state.evaluations_since_best = number<std::int64_t>(file, "evaluations_since_best", where);
  return state;
}

void load_variables(const TensorFile& file, const std::string& where, Variables& variables) {
  for (const auto& [name, variable] : variables.all()) {
    const auto found = file.tensors.find(name);
    check(found != file.tensors.end(), ErrorKind::kBadInput, "{}: it has no tensor {}", where,
          name);
    check(found->second.shape() == variable.type.shape, ErrorKind::kBadInput,
          "{}: tensor {}: expected {}, got {}", where, name, variable.type.shape.text(),
          found->second.shape().text());
  }
  for (const auto& [name, variable] : variables.all()) {
    variables.write(name, file.tensors.at(name));
  }
}

Config config_of_checkpoint(const TensorFile& file, const std::string& where,
                            const MakeModel& make) {
  Config config(make(metadata(file, "model", where)));
  config.apply_toml(metadata(file, "recipe", where), where);
  return config;
}

}  // namespace keel::train
