// Naming, order and pruning of checkpoints, and their average.
#include "frontend/train/checkpoint_store.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <system_error>
#include <utility>

#include "frontend/io/atomic_file.h"

namespace keel::train {
namespace {

namespace fs = std::filesystem;

constexpr io::SafetensorsOptions kChecked{.require_checksums = true};
constexpr std::string_view kStepPrefix = "step-";

std::string step_name(std::int64_t step) {
  return fmt::format("{}{:08}.safetensors", kStepPrefix, step);
}

std::optional<std::int64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  std::int64_t step = 0;
  std::from_chars(name.data() + kStepPrefix.size(), name.data() + name.size(), step);
  // Only the one spelling that save() uses, so that no step can have two files.
  return name == step_name(step) ? std::optional(step) : std::nullopt;
}

// Steps and their files, newest first.
std::vector<std::pair<std::int64_t, fs::path>> step_files(const fs::path& directory) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (const auto step = step_of(it->path())) found.emplace_back(*step, it->path());
  }
  check(!error || error == std::errc::no_such_file_or_directory, ErrorKind::kIo,
        "[checkpoint] {}: {}", directory.string(), error.message());
  std::ranges::sort(found, std::greater{});
  return found;
}

bool is_no_carry(std::string_view name) { return !name.starts_with(kCarryPrefix); }

io::TensorFile read_weights(const fs::path& path) {
  io::TensorFile file = io::read_safetensors(path, kChecked);
  std::erase_if(file.tensors, [](const auto& named) { return !is_no_carry(named.first); });
  return file;
}

void check_same_tensors(const io::TensorFile& file, const io::TensorFile& newest,
                        const fs::path& path) {
  for (const auto& [name, tensor] : newest.tensors) {
    const auto other = file.tensors.find(name);
    const std::string got = other == file.tensors.end() ? "none" : other->second.type().text();
    check(got == tensor.type().text(), ErrorKind::kBadInput,
          "[checkpoint] {}: tensor {}: expected {} as in the newest, got {}", path.string(), name,
          tensor.type().text(), got);
  }
  check(file.tensors.size() == newest.tensors.size(), ErrorKind::kBadInput,
        "[checkpoint] {}: expected {} tensors as in the newest, got {}", path.string(),
        newest.tensors.size(), file.tensors.size());
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path directory, Warn warn)
    : directory_(std::move(directory)), warn_(std::move(warn)) {}

void CheckpointStore::save(std::int64_t step, const io::TensorFile& content, bool is_best,
                           std::span<const std::int64_t> kept) {
  check(step >= 0, ErrorKind::kUsage, "[checkpoint] step: expected >= 0, got {}", step);
  std::error_code error;
  fs::create_directories(directory_, error);
  check(!error, ErrorKind::kIo, "[checkpoint] {}: {}", directory_.string(), error.message());
  io::remove_stale_temps(directory_);
  // The best comes first: the step file may record that this was the best so far, and a crash
  // between the two must not leave that record without its file.
  if (is_best) io::write_safetensors(best_path(), content, is_no_carry);
  io::write_safetensors(path(step), content);
  prune(step, kept);
}

// Files of later steps are damaged ones that this run was resumed after.
void CheckpointStore::prune(std::int64_t saved, std::span<const std::int64_t> kept) const {
  for (const auto& [step, path] : step_files(directory_)) {
    const bool stays = step >= saved || std::ranges::find(kept, step) != kept.end();
    if (!stays) io::file_calls().unlink(path.c_str());
  }
}

std::optional<Checkpoint> CheckpointStore::latest(std::int64_t most) const {
  for (const auto& [step, path] : step_files(directory_)) {
    if (step > most) continue;
    try {
      return Checkpoint{step, path, io::read_safetensors(path, kChecked)};
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kMemory) throw;
      warn_(fmt::format("[checkpoint] passed over: {}", error.what()));
    }
  }
  return std::nullopt;
}

fs::path CheckpointStore::path(std::int64_t step) const { return directory_ / step_name(step); }

std::vector<fs::path> CheckpointStore::paths() const {
  std::vector<fs::path> result;
  for (auto& [step, path] : step_files(directory_)) result.push_back(std::move(path));
  return result;
}

std::vector<std::int64_t> CheckpointStore::steps() const {
  std::vector<std::int64_t> result;
  for (const auto& [step, path] : step_files(directory_)) result.push_back(step);
  return result;
}

io::TensorFile average_checkpoints(std::span<const fs::path> newest_first) {
  check(!newest_first.empty(), ErrorKind::kUsage, "[checkpoint] average: expected files, got none");
  io::TensorFile result = read_weights(newest_first[0]);
  std::map<std::string, Tensor> sums;
  for (const auto& [name, tensor] : result.tensors) {
    if (is_floating(tensor.dtype())) sums.emplace(name, tensor.to(DType::kF64));
  }
  for (const fs::path& path : newest_first.subspan(1)) {
    const io::TensorFile file = read_weights(path);
    check_same_tensors(file, result, path);
    for (auto& [name, sum] : sums) {
      const Tensor term = file.tensors.at(name).to(DType::kF64);
      std::ranges::transform(sum.as<double>(), term.as<double>(), sum.as<double>().begin(),
                             std::plus{});
    }
  }
  for (auto& [name, sum] : sums) {
    for (double& value : sum.as<double>()) value /= double(newest_first.size());
    Tensor& tensor = result.tensors.at(name);
    tensor = sum.to(tensor.dtype());
  }
  std::vector<std::string> names;
  for (const fs::path& path : newest_first) names.push_back(path.stem().string());
  result.metadata["average_of"] = fmt::format("{}", fmt::join(names, " "));
  return result;
}

}  // namespace keel::train
