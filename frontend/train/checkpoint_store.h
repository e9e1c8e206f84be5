// A directory of checkpoints: the last few, and the best.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

// Files are named step-00001234.safetensors and best.safetensors; anything else in the directory is
// left alone. One process at a time may save; others may read meanwhile.
class CheckpointStore {
 public:
  using Warn = std::function<void(const std::string& message)>;

  // Keeps `keep` >= 1 step files, else Error{kUsage}. `warn` hears of every checkpoint passed over.
  // The directory is made by the first save.
  CheckpointStore(std::filesystem::path directory, int keep, Warn warn);

  // Puts a checkpoint safely on the disk, also as the best when asked, and only then removes those
  // that are too old. On Error{kIo} every earlier step file is still there, and the best is
  // the earlier or the new one, whole.
  void save(std::int64_t step, const io::TensorFile& content, bool is_best);

  // The newest checkpoint that is intact, checksums and all; nothing when there is none.
  std::optional<Checkpoint> latest() const;

  // The step files there are, newest first; intact or not.
  std::vector<std::filesystem::path> paths() const;
  std::filesystem::path best_path() const { return directory_ / "best.safetensors"; }

 private:
  void prune(std::int64_t saved) const;

  std::filesystem::path directory_;
  int keep_;
  Warn warn_;
};

// The arithmetic mean, taken in f64, of the floating tensors of checkpoints, the newest given
// first; other tensors and the metadata are those of the newest. Throws Error{kUsage} without any
// path, Error{kBadInput} naming file and tensor when names or types differ between the files.
io::TensorFile average_checkpoints(std::span<const std::filesystem::path> newest_first);

}  // namespace keel::train
