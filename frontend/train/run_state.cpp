#include "frontend/train/run_state.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <ranges>
#include <span>

#include "frontend/train/checkpoint_store.h"
#include "frontend/train/step_graph.h"

namespace keel::train {
namespace {

const std::string kAsset = "asset.";  // before the names of a model's assets in the metadata

const std::string& metadata(const io::TensorFile& file, const std::string& key,
                            const std::string& where) {
  const auto found = file.metadata.find(key);
  check(found != file.metadata.end(), ErrorKind::kBadInput,
        "{}: expected a checkpoint of keel, its metadata has no '{}'", where, key);
  return found->second;
}

// "" where an earlier version did not write it.
std::string later_text(const io::TensorFile& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  return found == file.metadata.end() ? "" : found->second;
}

class Numbers {
 public:
  Numbers(const io::TensorFile& file, const std::string& where) : file_(file), where_(where) {}

  // Kernels take steps as 32 bits, which bounds every count.
  std::int64_t count(const std::string& key, std::int64_t least = 0) const {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto value = number<std::int64_t>(key);
    check(value >= least && value <= kMost, ErrorKind::kBadInput,
          "{}: metadata '{}': expected {} to {}, got {}", where_, key, least, kMost, value);
    return value;
  }
  // Numbers that checkpoints of earlier versions do not have, or have by another name: 0 for a
  // count that is absent, NaN for another number.
  std::int64_t later_count(const std::string& key, const std::string& former = "") const {
    for (const std::string& name : {key, former}) {
      if (file_.metadata.contains(name)) return count(name);
    }
    return 0;
  }
  double later_number(const std::string& key) const {
    return file_.metadata.contains(key) ? number<double>(key) : NAN;
  }
  // Steps in ascending order, none after `last`. A checkpoint of an earlier version knows only the
  // last of them, as its anchor.
  std::vector<std::int64_t> scheduled(std::int64_t last) const {
    if (!file_.metadata.contains("scheduled")) return {later_count("anchor")};
    const std::string& text = metadata(file_, "scheduled", where_);
    std::vector<std::int64_t> steps;
    for (const auto word : std::views::split(text, ' ')) {
      const std::string_view digits(word.begin(), word.end());
      std::int64_t step = -1;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
      const bool is_number = error == std::errc{} && end == digits.data() + digits.size();
      const std::int64_t least = steps.empty() ? 0 : steps.back() + 1;
      check(is_number && step >= least && step <= last, ErrorKind::kBadInput,
            "{}: metadata 'scheduled': expected ascending steps up to {}, got '{}'", where_, last,
            text);
      steps.push_back(step);
    }
    check(!steps.empty(), ErrorKind::kBadInput,
          "{}: metadata 'scheduled': expected steps, got none", where_);
    return steps;
  }
  double real(const std::string& key) const {
    const auto value = number<double>(key);
    check(!std::isnan(value), ErrorKind::kBadInput, "{}: metadata '{}': expected a number, got {}",
          where_, key, value);
    return value;
  }
  // A sum of what updates had.
  double sum(const std::string& key, double least) const {
    const double value = real(key);
    check(std::isfinite(value) && value >= least, ErrorKind::kBadInput,
          "{}: metadata '{}': expected a finite number{}, got {}", where_, key,
          std::isfinite(least) ? fmt::format(" of {} or more", least) : "", value);
    return value;
  }

 private:
  template <class T>
  T number(const std::string& key) const {
    const std::string& text = metadata(file_, key, where_);
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    check(error == std::errc{} && end == text.data() + text.size(), ErrorKind::kBadInput,
          "{}: metadata '{}': expected a number, got '{}'", where_, key, text);
    return value;
  }

  const io::TensorFile& file_;
  const std::string& where_;
};

// Backends keep floating variables in float32 or float64. Other types, such as half precision,
// would lose what a run depends on.
void check_tensor(const io::TensorFile& file, const std::string& where, const std::string& name,
                  const TensorType& type) {
  const Shape& shape = type.shape;
  const auto found = file.tensors.find(name);
  check(found != file.tensors.end(), ErrorKind::kBadInput, "{}: it has no tensor {}", where, name);
  check(found->second.shape() == shape, ErrorKind::kBadInput, "{}: tensor {}: expected {}, got {}",
        where, name, shape.text(), found->second.shape().text());
  const DType stored = found->second.dtype();
  const bool is_wide = stored == DType::kF32 || stored == DType::kF64;
  check(is_floating(type.dtype) ? is_wide : stored == type.dtype, ErrorKind::kBadInput,
        "{}: tensor {}: expected {}, got {}", where, name,
        is_floating(type.dtype) ? "f32 or f64" : name_of(type.dtype), name_of(stored));
}

// The best value of a run's first metric so far. A value that no measurement gives would never be
// beaten.
double best_of(const Numbers& numbers, const task::MetricInfo& info, const std::string& where) {
  const double best = numbers.real("best");
  // The range of a scorer's value is not known: order_embeddings adds three shares up.
  const bool is_share = info.of == task::percent_of || info.of == task::percent_without,
             is_worst = best == (info.higher_is_better ? -INFINITY : INFINITY);
  const double most = is_share ? 100 : double(std::numeric_limits<float>::max());
  const double least = is_share || info.of == task::perplexity_of ? 0 : -most;
  check(is_worst || (best >= least && best <= most), ErrorKind::kBadInput,
        "{}: metadata 'best': expected a {} of {} to {}, got {}", where, info.name, least, most,
        best);
  return best;
}

void expect_finite(const io::TensorFile& file, const std::string& where, const std::string& name) {
  const Tensor& tensor = file.tensors.at(name);
  if (!is_floating(tensor.dtype())) return;
  const Tensor values = tensor.to(DType::kF32);
  const std::span<const float> all = values.as<float>();
  const auto bad = std::ranges::find_if_not(all, [](float value) { return std::isfinite(value); });
  check(bad == all.end(), ErrorKind::kBadInput,
        "{}: tensor {}: expected finite numbers, got {} as element {}", where, name,
        bad == all.end() ? 0 : *bad, bad - all.begin());
}

// Names and shapes alone do not tell a network: another norm or dropout may have the same. Options
// that a checkpoint of an earlier version does not know are taken as they come.
void expect_options(const io::TensorFile& file, const std::string& where, const Job& job) {
  const auto recipe = file.metadata.find("recipe");
  if (recipe == file.metadata.end()) return;
  std::map<std::string, std::string> trained;
  try {
    for (const auto& [key, value] : read_settings(recipe->second, "recipe")) trained[key] = value;
  } catch (const Error& error) {
    fail(ErrorKind::kBadInput, "{}: metadata: {}", where, error.what());
  }
  for (const auto& [name, value] : job.task().options()) {
    const auto expected = trained.find("model." + name);
    check(expected == trained.end() || expected->second == value, ErrorKind::kBadInput,
          "{}: model.{}: expected '{}', with which it was trained, got '{}'", where, name,
          expected == trained.end() ? "" : expected->second, value);
  }
}

// Sets the variables, which the file's tensors fit.
void take_values(const io::TensorFile& file, Variables& variables) {
  for (const auto& [name, variable] : variables.all()) {
    if (!variable.is_cached) variables.write(name, file.tensors.at(name));
  }
}

void load_carries(const io::TensorFile& file, const std::string& where, Carries& carries) {
  std::map<std::string, Tensor> values;
  for (const auto& [name, tensor] : file.tensors) {
    if (!name.starts_with(kCarryPrefix)) continue;
    values.emplace(name.substr(kCarryPrefix.size()), tensor.clone());
  }
  try {
    carries.write(values);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", where, error.what());
  }
}

Job stored_job(const io::TensorFile& file, const std::string& where, const MakeTask& make) {
  const std::string &model = metadata(file, "model", where),
                    &recipe = metadata(file, "recipe", where);
  try {
    Config config(make(model));
    config.apply_toml(recipe, "recipe");
    config.validate();
    task::Assets assets;
    for (const auto& [key, text] : file.metadata) {
      if (key.starts_with(kAsset)) assets[key.substr(kAsset.size())] = text;
    }
    return {std::move(config), std::move(assets)};
  } catch (const Error& error) {
    // An error that would be wrong usage of a recipe means a bad file here.
    fail(ErrorKind::kBadInput, "{}: metadata: {}", where, error.what());
  }
}

}  // namespace

void RunState::schedule(std::int64_t most) {
  std::erase(scheduled, step > 0 ? 0 : -1);
  if (scheduled.empty() || scheduled.back() != step) scheduled.push_back(step);
  while (std::ssize(scheduled) > most) scheduled.erase(scheduled.begin());
}

io::TensorFile to_checkpoint(const RunState& state, const Job& job, const Variables& variables,
                             const Carries* carries) {
  io::TensorFile file;
  if (carries) {
    for (auto& [name, value] : carries->read()) {
      file.tensors.emplace(std::string(kCarryPrefix) + name, std::move(value));
    }
  }
  for (const auto& [name, variable] : variables.all()) {
    if (!variable.is_cached) file.tensors.emplace(name, variables.read(name, true));
  }
  file.metadata = {{"model", std::string(job.task().name())},
                   {"recipe", job.config().to_toml()},
                   {"step", fmt::format("{}", state.step)},
                   {"epoch", fmt::format("{}", state.epoch)},
                   {"batch", fmt::format("{}", state.batch)},
                   {"epoch_loss", fmt::format("{}", state.epoch_loss)},
                   {"epoch_items", fmt::format("{}", state.epoch_items)},
                   {"train_loss", fmt::format("{}", state.train_loss)},
                   {"best", fmt::format("{}", state.best)},
                   {"best_step", fmt::format("{}", state.best_step)},
                   {"evaluations_since_best", fmt::format("{}", state.evaluations_since_best)},
                   {"scheduled", fmt::format("{}", fmt::join(state.scheduled, " "))},
                   {"undone", fmt::format("{}", state.undone)},
                   {"skipped", fmt::format("{}", state.skipped)},
                   {"consecutive_non_finite", fmt::format("{}", state.consecutive_non_finite)},
                   {"data", state.data}};
  if (!state.backend.empty()) file.metadata["backend"] = state.backend;
  for (const auto& [name, text] : job.network().assets()) file.metadata[kAsset + name] = text;
  return file;
}

RunState from_checkpoint(const io::TensorFile& file, const std::string& where, const Job& job,
                         Variables& variables, Carries* carries) {
  const std::string& model = metadata(file, "model", where);
  check(model == job.task().name(), ErrorKind::kBadInput,
        "{}: expected a checkpoint of {}, got one of {}", where, job.task().name(), model);
  expect_options(file, where, job);
  const Numbers numbers(file, where);
  RunState state;
  state.step = numbers.count("step");
  state.epoch = numbers.count("epoch");
  state.batch = numbers.count("batch");
  state.epoch_loss = numbers.sum("epoch_loss", -INFINITY);
  state.epoch_items = numbers.sum("epoch_items", 0);
  state.best = best_of(numbers, job.task().metrics().front(), where);
  state.best_step = numbers.count("best_step", -1);
  state.evaluations_since_best = numbers.count("evaluations_since_best");
  if (state.epoch > 0) state.train_loss = numbers.later_number("train_loss");
  state.scheduled = numbers.scheduled(state.step);
  state.undone = numbers.later_count("undone");
  state.skipped = numbers.later_count("skipped", "left_out");
  state.consecutive_non_finite = numbers.later_count("consecutive_non_finite", "strikes");
  state.data = later_text(file, "data");
  state.backend = later_text(file, "backend");
  for (const auto& [name, tensor] : file.tensors) {
    const bool is_carry = carries && name.starts_with(kCarryPrefix);
    check(is_carry || variables.all().contains(name), ErrorKind::kBadInput,
          "{}: tensor {} does not belong to this run", where, name);
  }
  expect_fits(file, where, variables);
  if (carries) load_carries(file, where, *carries);
  take_values(file, variables);
  return state;
}

void expect_fits(const io::TensorFile& file, const std::string& where, const Variables& variables) {
  for (const auto& [name, variable] : variables.all()) {
    if (variable.is_cached) continue;
    check_tensor(file, where, name, variable.type);
    try {
      variables.expect_fits(name, file.tensors.at(name));
    } catch (const Error& error) {
      fail(error.kind(), "{}: tensor {}", where, error.what());
    }
  }
}

void load_finite(const io::TensorFile& file, const std::string& where, Variables& variables) {
  expect_fits(file, where, variables);
  for (const auto& [name, variable] : variables.all()) {
    if (!variable.is_cached) expect_finite(file, where, name);
  }
  take_values(file, variables);
}

void load_variables(const io::TensorFile& file, const std::string& where, Variables& variables) {
  expect_fits(file, where, variables);
  take_values(file, variables);
}

Job job_of_checkpoint(const io::TensorFile& file, const std::string& where, const MakeTask& make) {
  Job job = stored_job(file, where, make);
  // Without this check a recipe of a few bytes could ask for any amount of memory.
  const Graph graph = build_evaluate(job, job.network().sizes(1));
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    const bool is_leaf = node.kind == NodeKind::kParameter || node.kind == NodeKind::kState;
    if (is_leaf) check_tensor(file, where, node.name, node.outputs[0]);
  }
  return job;
}

}  // namespace keel::train
