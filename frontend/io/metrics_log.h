// metrics.jsonl: one JSON object in each line, in the order of writing.
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
  // Opens for appending, and makes the file if it does not exist. Removes a last line that a killed
  // process left unfinished and, when resuming at `last_step`, all lines of later steps, as if the
  // run had never gone on. Throws Error{kIo}; when resuming, Error{kBadInput} with file and line
  // for a line that is not an object with an integer "step".
  explicit MetricsLog(const std::filesystem::path& path,
                      std::optional<std::int64_t> last_step = std::nullopt);

  // Appends {"step": step, ...values} with a single system call. A number that is not finite is
  // written as null, because JSON has no such numbers. Throws Error{kIo}.
  void write(std::int64_t step, const nlohmann::ordered_json& values);

  // Returns when all lines are on the disk, so that a checkpoint never outlives its lines.
  void sync() { file_.sync(); }

 private:
  FileHandle file_;
};

// All lines of a log, except an unfinished last one. Throws Error{kIo}, or Error{kBadInput} with
// file and line for a line that is not an object with an integer "step".
std::vector<nlohmann::ordered_json> read_metrics(const std::filesystem::path& path);

}  // namespace keel::io
