// Finds and pairs the four files.
#include "frontend/data/mnist.h"

#include <optional>
#include <string>

#include "frontend/io/idx.h"
#include "frontend/io/near_miss.h"

namespace keel::data {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> plain_or_gz(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return path;
  const fs::path packed = path.string() + ".gz";
  if (fs::exists(packed, ignored)) return packed;
  return std::nullopt;
}

std::string near_files(const fs::path& folder) {
  return io::near_misses(folder, {"ubyte", "idx"}, "the names have to be the published ones");
}

fs::path find(const fs::path& folder, const std::string& file) {
  const std::optional<fs::path> found = plain_or_gz(folder / file);
  check(found.has_value(), ErrorKind::kIo, "[mnist] {}: expected {} or {}.gz, got neither{}",
        folder.string(), file, file, near_files(folder));
  return *found;
}

// `part` is the files' word for it: train or t10k.
Dataset load_part(const fs::path& folder, const std::string& part) {
  const fs::path images_path = find(folder, part + "-images-idx3-ubyte");
  const fs::path labels_path = find(folder, part + "-labels-idx1-ubyte");
  Tensor images = io::read_idx_images(images_path);
  Tensor labels = io::read_idx_labels(labels_path);
  check(images.shape()[1] == 28 && images.shape()[2] == 28, ErrorKind::kBadInput,
        "[mnist] {}: expected images of (28, 28), got {}", images_path.string(),
        images.shape().text());
  check(images.shape()[0] == labels.shape()[0], ErrorKind::kBadInput,
        "[mnist] {}: expected {} labels, as many as images, got {}", labels_path.string(),
        images.shape()[0], labels.shape()[0]);
  // The files may hold another set in the same form, so that their name is all that is known.
  Dataset result(images_path.string());
  result.add("image", std::move(images));
  result.add("label", std::move(labels));
  return result;
}

}  // namespace

Dataset load_mnist(const fs::path& folder, Part part) {
  const std::string marker = "train-images-idx3-ubyte";
  for (const fs::path& place : {folder, folder / "mnist"}) {
    if (plain_or_gz(place / marker)) {
      return load_part(place, part == Part::kTrain ? "train" : "t10k");
    }
  }
  fail(ErrorKind::kIo,
       "[mnist] {}: expected {} or {}.gz there or in its folder mnist, got neither{}",
       folder.string(), marker, marker, near_files(folder));
}

}  // namespace keel::data
