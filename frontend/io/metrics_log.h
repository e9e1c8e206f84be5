// metrics.jsonl: one JSON object a line, in the order of writing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "frontend/io/atomic_file.h"

namespace keel::io {

class MetricsLog {
 public:
  // Opens for appending, and makes the file when there is none. A last line that a killed process
  // left unfinished is removed; on resuming at `last_step`, so are all lines of later steps, and
  // the file is as if the run had never gone on. Throws Error{kIo}; Error{kBadInput} with file and
  // line when, on resuming, a line is not an object with an integer "step".
  explicit MetricsLog(const std::filesystem::path& path,
                      std::optional<std::int64_t> last_step = std::nullopt);

  // Appends {"step": step, ...values} with a single system call. A number that is not finite is
  // written as null, which is all that JSON has for it. Throws Error{kIo}.
  void write(std::int64_t step, const nlohmann::ordered_json& values);

  // Returns when all lines are on the disk, so that a checkpoint never outlives its lines.
  void sync() { file_.sync(); }

 private:
  FileHandle file_;
};

// All lines of a log but an unfinished last one. Throws Error{kIo}, or Error{kBadInput} with file
// and line for a line that is not an object with an integer "step".
std::vector<nlohmann::ordered_json> read_metrics(const std::filesystem::path& path);

}  // namespace keel::io
