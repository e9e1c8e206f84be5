// Scalars for TensorBoard: an event file of TFRecords.
//   record  length (u64 LE), masked crc32c of the length, data, masked crc32c of the data
//   data    tensorflow.Event: wall_time (1, double), step (2, int64), file_version (3, string),
//           summary (5) with values of tag (1, string) and simple_value (2, float),
//           session_log (7) with status (1, enum START = 1)
// TensorBoard's table of hyperparameters reads summaries with metadata (9), whose plugin_data (1)
// name the plugin "hparams" (1) and hold a HParamsPluginData (2): session_start_info (3) with a map
// of hparams (1) and the start (5, double), or session_end_info (4) with status (1) and end (2).
// Source: TensorFlow's record_writer.cc, event.proto and summary.proto, TensorBoard's
// plugins/hparams (plugin_data.proto, api.proto, metadata.py).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/io/atomic_file.h"

namespace keel::io {

class EventFile {
 public:
  // Makes a new file in `directory`, named by the time (seconds since 1970). A resumed run gives
  // its first step: TensorBoard then forgets the points of earlier files from this step on. Throws
  // Error{kIo}, also when a file of that name already exists.
  EventFile(const std::filesystem::path& directory, double wall_time,
            std::optional<std::int64_t> first_step = std::nullopt);

  // Appends one point with a single system call. Throws Error{kIo}.
  void add_scalar(std::string_view tag, std::int64_t step, float value, double wall_time);

  // Adds the hyperparameters of a run, by name; texts that are finite numbers, "true" or "false"
  // become numbers or booleans. TensorBoard uses the first of a run. Throws Error{kIo}.
  void add_settings(std::span<const std::pair<std::string, std::string>> settings,
                    double wall_time);

  // Adds the end of the run, successful or not. Throws Error{kIo}.
  void add_end(bool success, double wall_time);

 private:
  void add_hyperparameters(std::string_view tag, std::string_view content, double wall_time);

  FileHandle file_;
};

// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) of the bytes.
std::uint32_t crc32c(std::string_view bytes);

// One TFRecord holding `data`.
std::string tf_record(std::string_view data);

}  // namespace keel::io
