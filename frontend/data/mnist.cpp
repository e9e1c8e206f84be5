// Finds and pairs the four files.
#include "frontend/data/mnist.h"

#include <optional>
#include <string>
#include <string_view>

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

constexpr std::string_view kImages = "-images-idx3-ubyte", kLabels = "-labels-idx1-ubyte";

// Whether a set is there, or one part of it: files of two sets are never mixed.
bool has_images(const fs::path& folder) {
  return plain_or_gz(folder / ("train" + std::string(kImages))) ||
         plain_or_gz(folder / ("t10k" + std::string(kImages)));
}

// `part` is the files' word for it: train, t10k, or any other.
TensorDataset load_part(const fs::path& folder, const std::string& part) {
  const fs::path images_path = find(folder, part + std::string(kImages));
  const fs::path labels_path = find(folder, part + std::string(kLabels));
  Tensor images = io::read_idx_images(images_path);
  Tensor labels = io::read_idx_labels(labels_path);
  check(images.shape()[1] == 28 && images.shape()[2] == 28, ErrorKind::kBadInput,
        "[mnist] {}: expected images of (28, 28), got {}", images_path.string(),
        images.shape().text());
  check(images.shape()[0] == labels.shape()[0], ErrorKind::kBadInput,
        "[mnist] {}: expected {} labels, as many as images, got {}", labels_path.string(),
        images.shape()[0], labels.shape()[0]);
  // The files may hold another set in the same form, so that their name is all that is known.
  TensorDataset result(images_path.string());
  result.add("image", std::move(images));
  result.add("label", std::move(labels));
  return result;
}

}  // namespace

TensorDataset load_mnist(const fs::path& folder, Part part) {
  if (fs::is_regular_file(folder)) {
    const std::string name = folder.extension() == ".gz" ? folder.stem() : folder.filename();
    check(name.ends_with(kImages), ErrorKind::kIo,
          "[mnist] {}: expected a folder, or a file of images, *{} or .gz", folder.string(),
          kImages);
    return load_part(folder.parent_path(), name.substr(0, name.size() - kImages.size()));
  }
  const std::string word = part == Part::kTrain ? "train" : "t10k";
  const std::string marker = word + std::string(kImages);
  for (const fs::path& place : {folder, folder / "mnist"}) {
    if (has_images(place)) return load_part(place, word);
  }
  fail(ErrorKind::kIo,
       "[mnist] {}: expected {} or {}.gz there or in its folder mnist, got neither{}",
       folder.string(), marker, marker, near_files(folder));
}

}  // namespace keel::data
