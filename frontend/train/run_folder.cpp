#include "frontend/train/run_folder.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "frontend/io/packed_file.h"
#include "frontend/train/checkpoint_store.h"
#include "frontend/train/config.h"
#include "src/core/error.h"
#include "src/core/shown.h"

namespace keel::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxConfigBytes = 1 << 20;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool holds_checkpoints(const RunFolder& folder) {
  const CheckpointStore store(folder.checkpoints(), [](const std::string&) {});
  return is_there(store.best_path()) || !store.paths().empty();
}

bool is_event_file(const fs::path& file) {
  return file.filename().string().find(".tfevents.") != std::string::npos;
}

fs::path earlier_events(const RunFolder& folder) { return folder.path / "events"; }

// The files that a run leaves besides checkpoints.
std::vector<fs::path> files_of(const RunFolder& folder) {
  std::vector<fs::path> files{folder.config(),  folder.metrics(),      folder.result(),
                              folder.average(), folder.observations(), earlier_events(folder)};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder.path, error)) {
    if (is_event_file(entry.path())) files.push_back(entry.path());
  }
  return files;
}

// The settings in config.toml; empty when there is none that can be read.
task::OptionValues settings_of(const RunFolder& folder) {
  if (!is_there(folder.config())) return {};
  const std::string where = folder.config();
  try {
    return read_settings(io::read_file(where, kMaxConfigBytes), where);
  } catch (const Error&) {  // nothing depends on that file, which is written again
    return {};
  }
}

std::optional<std::string> value_of(const task::OptionValues& settings, const std::string& key) {
  const auto found = std::ranges::find(settings, key, &task::OptionValues::value_type::first);
  return found == settings.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

fs::path RunFolder::events_folder() const {
  std::error_code error;
  return fs::is_directory(earlier_events(*this), error) ? earlier_events(*this) : path;
}

std::unique_ptr<io::FolderLock> lock_run(const RunFolder& folder) {
  return std::make_unique<io::FolderLock>(folder.path, "keel train",
                                          io::FolderLock::Holder::kProcess);
}

void expect_no_run(const RunFolder& folder) {
  const std::string path = folder.path.string();
  check(!holds_checkpoints(folder), ErrorKind::kUsage,
        "{}: this folder holds a run already; give another --out, or --resume {}", path,
        shell_quoted(path));
  for (const fs::path& file : files_of(folder)) {
    check(!is_there(file), ErrorKind::kUsage,
          "{}: this folder holds {} of a run whose checkpoints are gone; give another --out", path,
          file.filename().string());
  }
}

bool is_file_of_run(const fs::path& file) {
  const fs::path parent = file.parent_path();
  const RunFolder own{parent}, above{parent.parent_path()};
  if (parent == above.checkpoints() && is_there(above.config())) {
    return file.extension() == ".safetensors";
  }
  const bool is_in_folder = parent == earlier_events(above) || parent == above.observations();
  if (is_in_folder && is_there(above.config())) return true;
  if (!is_there(own.config()) || !is_there(own.metrics())) return false;
  std::vector<fs::path> files = files_of(own);
  files.push_back(parent / "lock");
  return std::ranges::find(files, file) != files.end();
}

void expect_model_of_run(const RunFolder& folder, const io::TensorFile& checkpoint,
                         const std::string& where) {
  const std::optional<std::string> expected = value_of(settings_of(folder), "run.model");
  const auto found = checkpoint.metadata.find("model");
  if (!expected || found == checkpoint.metadata.end()) return;
  check(found->second == *expected, ErrorKind::kBadInput,
        "{}: expected a checkpoint of {}, as {} says, got one of {}", where, *expected,
        folder.config().string(), found->second);
}

void expect_options_of_run(const RunFolder& folder, const io::TensorFile& checkpoint,
                           const std::string& where) {
  const auto recipe = checkpoint.metadata.find("recipe");
  if (recipe == checkpoint.metadata.end()) return;
  const task::OptionValues trained = read_settings(recipe->second, where);
  for (const auto& [key, value] : settings_of(folder)) {
    const std::optional<std::string> expected = value_of(trained, key);
    if (!key.starts_with("model.") || !expected) continue;
    check(*expected == value, ErrorKind::kBadInput,
          "{}: {}: expected '{}', with which {} was trained, got '{}'", folder.config().string(),
          key, *expected, where, value);
  }
}

}  // namespace keel::train
