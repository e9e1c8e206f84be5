// A directory of checkpoints: the last few, and the best.
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

  // Keeps `keep` >= 1 step files, else throws Error{kUsage}. Calls `warn` for every checkpoint that
  // is passed over. The first save makes the directory.
  CheckpointStore(std::filesystem::path directory, int keep, Warn warn);

  // Writes a checkpoint safely to the disk, and if `is_best` also as the best, without its carries.
  // Only then removes those that are too old. That of step 0, which the recipe gives anyway, goes
  // as soon as there is another. The file of step `also_kept` always stays. On Error{kIo} every
  // earlier step file is still there, and the best is the earlier or the new one, whole.
  void save(std::int64_t step, const io::TensorFile& content, bool is_best,
            std::int64_t also_kept = -1);

  // Removes step files up to step `saved` that are too old: a process that was killed in a save,
  // after it wrote the new file, has left one too many.
  void prune(std::int64_t saved, std::int64_t also_kept = -1) const;

  // The newest intact checkpoint, with correct checksums, of a step up to `most`; nothing when
  // there is none.
  std::optional<Checkpoint> latest(
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;

  // The step files in the directory, newest first, intact or not.
  std::vector<std::filesystem::path> paths() const;
  std::filesystem::path best_path() const { return directory_ / "best.safetensors"; }
  std::filesystem::path path(std::int64_t step) const;

 private:
  std::filesystem::path directory_;
  int keep_;
  Warn warn_;
};

// The arithmetic mean, computed in f64, of the floating-point tensors of checkpoints, except
// carries. Other tensors and the metadata are those of the newest, which is given first;
// `average_of` in the metadata names the files, without their endings. Throws Error{kUsage} without
// any path, Error{kBadInput} naming file and tensor when names or types differ between the files.
io::TensorFile average_checkpoints(std::span<const std::filesystem::path> newest_first);

}  // namespace keel::train
