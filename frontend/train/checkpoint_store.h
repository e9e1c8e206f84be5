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

// Tensors whose names begin so are carries (src/runtime/carries.h): a run that goes on needs them,
// and they are no weights.
inline constexpr std::string_view kCarryPrefix = "carry:";

// Files are named step-00001234.safetensors and best.safetensors; anything else in the directory is
// left alone. One process at a time may save; others may read meanwhile.
class CheckpointStore {
 public:
  using Warn = std::function<void(const std::string& message)>;

  // Keeps `keep` >= 1 step files, else Error{kUsage}. `warn` hears of every checkpoint passed over.
  // The directory is made by the first save.
  CheckpointStore(std::filesystem::path directory, int keep, Warn warn);

  // Puts a checkpoint safely on the disk, without its carries also as the best when asked, and only
  // then removes those that are too old; that of step 0, which the recipe gives anyway, as soon as
  // there is another. The file of `also_kept` stays in any case. On Error{kIo} every earlier step
  // file is still there, and the best is the earlier or the new one, whole.
  void save(std::int64_t step, const io::TensorFile& content, bool is_best,
            std::int64_t also_kept = -1);

  // Removes step files up to `saved` that are too old; whoever was killed in a save, after the new
  // file, has left one too many.
  void prune(std::int64_t saved, std::int64_t also_kept = -1) const;

  // The newest checkpoint, of a step up to `most`, that is intact, checksums and all; nothing when
  // there is none.
  std::optional<Checkpoint> latest(
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;

  // The step files there are, newest first; intact or not.
  std::vector<std::filesystem::path> paths() const;
  std::filesystem::path best_path() const { return directory_ / "best.safetensors"; }
  std::filesystem::path path(std::int64_t step) const;

 private:
  std::filesystem::path directory_;
  int keep_;
  Warn warn_;
};

// The arithmetic mean, taken in f64, of the floating tensors of checkpoints but for carries, the
// newest given first; other tensors and the metadata are those of the newest, and `average_of`
// names the files, without their endings. Throws Error{kUsage} without any path, Error{kBadInput}
// naming file and tensor when names or types differ between the files.
io::TensorFile average_checkpoints(std::span<const std::filesystem::path> newest_first);

}  // namespace keel::train
