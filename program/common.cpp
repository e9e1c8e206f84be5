#include "program/common.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "backends/product_facts.h"
#include "backends/ranks.h"
#include "frontend/io/message.h"
#include "frontend/io/packed_file.h"
#include "frontend/train/compute_choice.h"
#include "frontend/train/run_folder.h"
#include "frontend/train/run_state.h"
#include "models/registry.h"
#include "program/processor.h"
#include "src/core/shown.h"

namespace keel::cli {
namespace {

constexpr std::int64_t kMaxRecipeBytes = 1 << 20;

// Times that were kept by another way of measuring have another version.
constexpr int kTimesVersion = 5;

train::ProductTimes times_here(train::Job& job, Backend& backend) {
  std::string machine = fmt::format("version {}, {}, {}, {}", kTimesVersion, processor_text(),
                                    backend.description(), backend_text(backend));
  train::KeptTimes kept(train::kept_times_file(), std::move(machine));
  return train::measure_products(backend, job, kept);
}

// Whether it holds on every rank.
bool all_ranks(Communicator* ranks, bool holds) {
  if (ranks == nullptr) return holds;
  const double mine = holds ? 1 : 0;
  const std::vector<double> all = gathered(*ranks, std::span(&mine, 1));
  return std::ranges::find(all, 0.0) == all.end();
}

std::string& called_name() {
  static std::string called = "keel";
  return called;
}

// Tries the forms of the task in which the data may be. Nothing if they are there in none of them.
std::optional<train::Job> job_of_other_form(RunArgs& args, bool says) {
  const std::string data = make_config(args).data().source;
  for (const task::OptionValues& form : make_task(args.model)->data_forms(data)) {
    RunArgs formed = args;
    std::string found;
    for (const auto& [name, value] : form) {
      if (names_key(args, "model." + name)) return std::nullopt;
      formed.sets.push_back(fmt::format("model.{}={}", name, value));
      found += (found.empty() ? "" : ", ") + formed.sets.back();
    }
    try {
      train::Job job(make_config(formed));
      if (says) io::say(fmt::format("the data have the form {}", found));
      args = std::move(formed);
      return job;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kIo) throw;
    }
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<task::Task> make_task(const std::string& name) {
  return models::find_model(name).make();
}

std::pair<std::string, std::string> setting_of(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  check(equals != std::string::npos, ErrorKind::kUsage, "--set: expected KEY=VALUE, got '{}'",
        assignment);
  return {assignment.substr(0, equals), assignment.substr(equals + 1)};
}

bool names_key(const RunArgs& args, const std::string& key) {
  return std::ranges::any_of(args.sets,
                             [&](const std::string& set) { return set.starts_with(key + "="); });
}

void apply_set(train::Config& config, const std::string& assignment) {
  const auto [key, value] = setting_of(assignment);
  config.set(key, value);
}

void expect_one(const std::string& option, const std::string& value, const std::string& key,
                const std::vector<std::string>& sets) {
  if (value.empty()) return;
  for (const std::string& assignment : sets) {
    check(!assignment.starts_with(key + "="), ErrorKind::kUsage,
          "{} and --set {}: expected one of them, got both", option, key);
  }
}

std::string recipe_name(const RunArgs& args) {
  if (!args.recipe.empty()) return args.recipe;
  const std::vector<models::Recipe>& recipes = models::find_model(args.model).recipes;
  const auto usual = std::ranges::find(recipes, args.usual_recipe, &models::Recipe::name);
  return usual == recipes.end() ? recipes.front().name : usual->name;
}

train::Config draft_config(const RunArgs& args) {
  expect_one("--data", args.data, "data.source", args.sets);
  expect_one("--norm", args.norm, "model.norm", args.sets);
  expect_one("--compute", args.compute, "train.compute", args.sets);
  const models::ModelEntry& entry = models::find_model(args.model);
  train::Config config(entry.make());
  const std::string recipe = recipe_name(args);
  if (recipe.ends_with(".toml")) {
    config.apply_toml(io::read_file(recipe, kMaxRecipeBytes), recipe);
  } else {
    config.apply_toml(models::find_recipe(entry, recipe), recipe);
  }
  if (!args.data.empty()) config.set("data.source", args.data);
  if (!args.norm.empty()) config.set("model.norm", args.norm);
  if (!args.compute.empty()) config.set("train.compute", args.compute);
  for (const std::string& assignment : args.sets) apply_set(config, assignment);
  return config;
}

train::Config make_config(const RunArgs& args) {
  train::Config config = draft_config(args);
  config.validate();
  return config;
}

train::Job make_job(const RunArgs& args) {
  RunArgs found = args;
  return find_job(found, true);
}

train::Job find_job(RunArgs& args, bool says) {
  try {
    return train::Job(make_config(args));
  } catch (const Error& missing) {
    if (missing.kind() != ErrorKind::kIo || !args.recipe.empty()) throw;
    if (auto job = job_of_other_form(args, says)) return std::move(*job);
    throw;
  }
}

void set_program(const char* called) { called_name() = called; }

std::string program_called() { return shell_quoted(called_name()); }

std::string backend_name(const RunArgs& args) {
  return args.backend.empty() ? default_backend() : args.backend;
}

BackendOptions backend_options(const RunArgs& args) {
  return {.threads = args.threads,
          .tf32 = args.tf32,
          .device = args.device,
          .local_rank = local_rank()};
}

std::string backend_text(const Backend& backend) {
  std::string text(backend.name());
  const char* separator = ": ";
  for (const auto& [name, value] : product_facts(backend)) {
    text += fmt::format("{}{} {}", std::exchange(separator, ", "), name, value);
  }
  return text;
}

std::unique_ptr<Backend> make_backend(const RunArgs& args) {
  return keel::make_backend(backend_name(args), backend_options(args));
}

void settle_compute(train::Job& job, Backend& backend, Communicator* ranks) {
  if (job.train().compute != train::Compute::kAuto) return;
  const bool measures = ranks == nullptr || ranks->rank() == 0;
  const train::ProductTimes times = measures ? times_here(job, backend) : train::ProductTimes{};
  const bool takes = measures ? std::isfinite(times.bf16) : train::takes_bf16(backend);
  const bool wants = takes && (!measures || times.faster() == train::Compute::kBf16);
  const bool all_take = all_ranks(ranks, takes), all_want = all_ranks(ranks, wants);
  const auto choice = all_want ? train::Compute::kBf16 : train::Compute::kF32;
  job.choose(choice);
  if (!measures) return;
  const std::string why =
      all_take ? fmt::format("the products of a step take {:.2f} ms in f32, {:.2f} ms in bf16",
                             times.f32 * 1e3, times.bf16 * 1e3)
               : "bf16 does not run here";
  io::say(fmt::format("train.compute = {}: {}", choice_text(choice), why));
}

void expect_settled(const train::Job& job) {
  check(job.train().compute != train::Compute::kAuto, ErrorKind::kUsage,
        "train.compute: expected f32 or bf16 here, got auto");
}

std::filesystem::path checkpoint_path(const std::string& given) {
  if (!std::filesystem::is_directory(given)) return given;
  const std::filesystem::path checkpoints = train::RunFolder{given}.checkpoints();
  check(std::filesystem::is_directory(checkpoints), ErrorKind::kIo,
        "{}: expected a checkpoint or a run's folder, got a folder without checkpoints", given);
  return checkpoints / "best.safetensors";
}

Checkpoint open_checkpoint(const std::string& given) {
  const std::filesystem::path path = checkpoint_path(given);
  io::TensorFile file = io::read_safetensors(path, {.require_checksums = true});
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (folder.filename() == "checkpoints") {
    train::expect_model_of_run({folder.parent_path()}, file, path);
  }
  train::Job job = train::job_of_checkpoint(file, path, make_task);
  return {path, std::move(file), std::move(job)};
}

std::uint64_t seed_of(std::int64_t given) {
  check(given >= 0, ErrorKind::kUsage, "--seed: expected 0 or more, got {}", given);
  return static_cast<std::uint64_t>(given);
}

task::OptionValues run_facts(const Backend& backend) {
  utsname system{};
  uname(&system);
  return {{"keel", KEEL_VERSION},
          {"backend", std::string(backend.name())},
          {"backend_description", backend.description()},
          {"processor", processor_text()},
          {"system", fmt::format("{} {}", system.sysname, system.release)}};
}

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) throw ReaderGone{};
  fail(ErrorKind::kIo, "cannot write to standard output: {}",
       std::generic_category().message(errno));
}

std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void print_json(const nlohmann::ordered_json& value) { print(json_text(value)); }

std::string text_of_answers(const task::Decoder& decoder) {
  return fmt::format("{}\n", fmt::join(decoder.answers(), "\n"));
}

std::string table_text(std::vector<std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = shown(shortened(cell, kMostShownBytes));
  }
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += line + "\n";
  }
  return text;
}

std::string labelled(const std::string& label, const std::string& text) {
  constexpr std::size_t kColumns = 100, kIndent = 14;
  std::string out, line = fmt::format("  {:<{}}", label, kIndent - 2);
  for (std::size_t at = 0; at < text.size();) {
    const std::string word = text.substr(at, text.find(' ', at) - at);
    if (line.size() > kIndent && line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line.assign(kIndent, ' ');
    }
    line += (line.size() > kIndent ? " " : "") + word;
    at += word.size() + 1;
  }
  return out + line + "\n";
}

}  // namespace keel::cli
