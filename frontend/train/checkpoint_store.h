// A directory of checkpoints: some steps, and the best.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"

namespace keel::train {

struct Checkpoint {
  std::int64_t step = 0;
  std::filesystem::path path;
  io::TensorFile content;
};

// The prefix of the names of carries (src/runtime/carries.h) in a checkpoint. A resumed run needs
// carries, but they are not weights.
inline constexpr std::string_view kCarryPrefix = "carry:";

// Files are named step-00001234.safetensors and best.safetensors; anything else in the directory is
// left alone. One process at a time may save; others may read meanwhile.
class CheckpointStore {
 public:
  using Warn = std::function<void(const std::string& message)>;

  // Calls `warn` for every checkpoint that is passed over. The first save makes the directory.
  CheckpointStore(std::filesystem::path directory, Warn warn);

  // Writes a checkpoint safely to the disk, and if `is_best` also as the best, without its carries.
  // Only then removes the files of earlier steps that are not in `kept`. On Error{kIo} every
  // earlier step file is still there, and the best is the earlier or the new one, whole.
  void save(std::int64_t step, const io::TensorFile& content, bool is_best,
            std::span<const std::int64_t> kept = {});

  // Removes the files of steps before `saved` that are not in `kept`: a process that was killed in
  // a save, after it wrote the new file, has left one too many.
  void prune(std::int64_t saved, std::span<const std::int64_t> kept) const;

  // The newest intact checkpoint, with correct checksums, of a step up to `most`; nothing when
  // there is none.
  std::optional<Checkpoint> latest(
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;

  // The step files in the directory, newest first, intact or not, and their steps.
  std::vector<std::filesystem::path> paths() const;
  std::vector<std::int64_t> steps() const;
  std::filesystem::path best_path() const { return directory_ / "best.safetensors"; }
  std::filesystem::path path(std::int64_t step) const;

 private:
  std::filesystem::path directory_;
  Warn warn_;
};

// The arithmetic mean, computed in f64, of the floating-point tensors of checkpoints, except
// carries. Other tensors and the metadata are those of the newest, which is given first;
// `average_of` in the metadata names the files, without their endings. Throws Error{kUsage} without
// any path, Error{kBadInput} naming file and tensor when names or types differ between the files.
io::TensorFile average_checkpoints(std::span<const std::filesystem::path> newest_first);

}  // namespace keel::train
