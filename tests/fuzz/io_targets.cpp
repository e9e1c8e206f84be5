// Readers of file formats.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "frontend/io/idx.h"
#include "frontend/io/json_text.h"
#include "frontend/io/metrics_log.h"
#include "frontend/io/npy.h"
#include "frontend/io/npz.h"
#include "frontend/io/packed_file.h"
#include "frontend/io/picture.h"
#include "frontend/io/safetensors.h"
#include "frontend/io/tar.h"
#include "tests/fuzz/target.h"

namespace keel::fuzz {
namespace {

void read_safetensors(std::string_view bytes) {
  const MemoryFile file(bytes);
  const io::TensorFile content = io::read_safetensors(file.path());
  const io::TensorFileInfo info = io::read_safetensors_info(file.path());
  expect(info.tensors.size() == content.tensors.size(), "header and file differ in tensors");
}

void read_npy(std::string_view bytes) {
  const Tensor array = io::parse_npy(bytes, "input");
  const Tensor again = io::parse_npy(io::npy_bytes(array), "again");
  expect(again.type() == array.type(), "an array changes its type when it is written");
}

void read_npz(std::string_view bytes) {
  const io::Arrays arrays = io::parse_npz(bytes, "input");
  expect(io::parse_npz(io::npz_bytes(arrays), "again").size() == arrays.size(),
         "arrays are lost when they are written");
}

void read_idx_images(std::string_view bytes) {
  const MemoryFile file(bytes);
  io::read_idx_images(file.path());
}

void read_idx_labels(std::string_view bytes) {
  const MemoryFile file(bytes);
  const Tensor labels = io::read_idx_labels(file.path());
  for (const std::int32_t label : labels.as<std::int32_t>()) {
    expect(label >= 0 && label < 10, "a label out of range");
  }
}

// gzip, xz, or plain.
void read_packed(std::string_view bytes) {
  constexpr std::int64_t kMost = 1 << 20;
  const MemoryFile file(bytes);
  expect(std::int64_t(io::read_file(file.path(), kMost).size()) <= kMost, "more than the cap");
}

void read_metrics(std::string_view bytes) {
  const MemoryFile file(bytes);
  for (const auto& line : io::read_metrics(file.path())) {
    expect(line.at("step").is_number_integer(), "a line without a step");
  }
}

void read_tar(std::string_view bytes) {
  const io::TarFiles tar = io::read_tar(bytes, "input");
  const auto lies_in = [](std::string_view part, std::string_view whole) {
    return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
  };
  for (const io::TarEntry& entry : tar.files) {
    const auto holds = [&](std::string_view whole) { return lies_in(entry.content, whole); };
    expect(entry.content.empty() || holds(bytes) || std::ranges::any_of(tar.expanded, holds),
           "content beyond the archive");
    expect(!io::is_hidden(entry.name), "a hidden file");
  }
}

void read_picture(std::string_view bytes) {
  const io::Picture picture = io::parse_picture(bytes, "input");
  expect(picture.width >= 1 && std::ssize(picture.pixels) == 3 * picture.width * picture.height,
         "a picture of another size");
}

void read_json_text(std::string_view bytes) { io::json_text(bytes, "text"); }

}  // namespace

std::span<const Target> io_targets() {
  static constexpr Target kTargets[] = {{"safetensors", read_safetensors},
                                        {"npy", read_npy},
                                        {"npz", read_npz},
                                        {"idx_images", read_idx_images},
                                        {"idx_labels", read_idx_labels},
                                        {"packed", read_packed},
                                        {"metrics", read_metrics},
                                        {"tar", read_tar},
                                        {"json_text", read_json_text},
                                        {"picture", read_picture}};
  return kTargets;
}

}  // namespace keel::fuzz
