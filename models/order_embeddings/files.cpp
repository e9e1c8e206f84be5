#include "models/order_embeddings/files.h"

#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "frontend/io/near_miss.h"
#include "frontend/io/npy.h"
#include "frontend/io/packed_file.h"
#include "frontend/io/safetensors.h"
#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "models/order_embeddings/synthetic.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTask = "order_embeddings";

constexpr std::int64_t kMaxCaptionBytes = std::int64_t{1} << 30;
constexpr std::int64_t kMaxFeatureBytes = std::int64_t{1} << 36;
constexpr std::array<std::string_view, 3> kPlaces = {"", "captions", "coco"};
constexpr std::array<std::string_view, 4> kPrefixes = {"", "coco_", "f30k_", "f8k_"};

std::vector<std::string> read_caption_lines(const fs::path& path, bool lower_case) {
  std::string content = text::read_text(path, kMaxCaptionBytes);
  if (lower_case) content = text::lower_case(content);
  std::vector<std::string> captions;
  text::Lines lines(content);
  while (const std::optional<text::Line> line = lines.next()) captions.emplace_back(line->text);
  return captions;
}

// Features ------------------------------------------------------------------------------------

Tensor read_one_tensor(const fs::path& path) {
  const io::TensorFileInfo info = io::read_safetensors_info(path);
  check(info.tensors.size() == 1, ErrorKind::kBadInput,
        "[order_embeddings] {}: expected one tensor, got {}", path.string(), info.tensors.size());
  io::TensorFile file = io::read_safetensors(path);
  return std::move(file.tensors.begin()->second);
}

void expect_features(const Tensor& features, const fs::path& path) {
  check(features.dtype() == DType::kF32 && features.shape().rank() == 2 &&
            features.shape()[0] >= 1 && features.shape()[1] >= 1,
        ErrorKind::kBadInput,
        "[order_embeddings] {}: expected f32(images, width), got {}; NumPy's astype('float32') "
        "and reshape(images, -1) bring an array into this form",
        path.string(), features.type().text());
  const std::int64_t width = features.shape()[1];
  const std::span<const float> all = features.as<float>();
  for (std::size_t e = 0; e < all.size(); ++e) {
    check(std::isfinite(all[e]), ErrorKind::kBadInput,
          "[order_embeddings] {}: row {}: expected finite numbers, got {}", path.string(),
          std::int64_t(e) / width, all[e]);
  }
}

Tensor features_beside(const fs::path& stem) {
  const fs::path tensors = stem.string() + ".safetensors", array = stem.string() + ".npy";
  const bool has_tensors = fs::exists(tensors);
  check(has_tensors || fs::exists(array), ErrorKind::kIo,
        "[order_embeddings] {}: expected the features of the images in {} or .npy, got neither "
        "(model.features=synthetic does without, with numbers made up of the captions){}",
        stem.parent_path().string(), tensors.filename().string(),
        io::near_misses(stem.parent_path(), {"_ims", "feat", ".mat", ".npz", ".npy"},
                        "an f32 array of NumPy [images, width] is read, as numpy.save writes it"));
  return read_features(has_tensors ? tensors : array);
}

// Captions with features ------------------------------------------------------------------------

struct CaptionFolder {
  fs::path place;
  std::string prefix;
};

std::optional<CaptionFolder> find_captions(const fs::path& folder, std::string_view part) {
  for (const std::string_view place : kPlaces) {
    for (const std::string_view prefix : kPrefixes) {
      const CaptionFolder found{folder / place, std::string(prefix)};
      const std::string name = fmt::format("{}{}_caps.txt", found.prefix, part);
      if (io::find_packed(found.place / name)) return found;
    }
  }
  return std::nullopt;
}

// Five lines an image, for as many images as there are features.
void expect_lines(const DescribedImages& images, const fs::path& path) {
  const std::int64_t lines = std::ssize(images.captions), count = images.features.shape()[0];
  const auto at_end = text::place(path.string(), lines);
  check(lines > 0 && lines % kCaptionsAnImage == 0, ErrorKind::kBadInput,
        "[order_embeddings] {}: expected {} lines for each image, got the end after {} of them",
        at_end, kCaptionsAnImage, lines % kCaptionsAnImage);
  check(lines / kCaptionsAnImage == count, ErrorKind::kBadInput,
        "[order_embeddings] {}: expected the captions of {} images, which have features, got "
        "those of {}",
        at_end, count, lines / kCaptionsAnImage);
}

// A file of captions, with the features in the files that begin with `features`.
DescribedImages read_described(const fs::path& path, const fs::path& features, bool lower_case) {
  DescribedImages images;
  images.captions = read_caption_lines(path, lower_case);
  images.features = features_beside(features);
  expect_lines(images, path);
  return images;
}

DescribedImages read_split(const CaptionFolder& from, std::string_view split, bool lower_case) {
  const std::string name = fmt::format("{}{}_caps.txt", from.prefix, split);
  const fs::path path = io::require_packed(kTask, from.place, name);
  return read_described(path, from.place / fmt::format("{}{}_ims", from.prefix, split), lower_case);
}

// A file's name without .gz or .xz, and without `ending`. Throws Error{kIo} where it does not end
// so.
std::string stem_of_file(const fs::path& file, std::string_view ending) {
  const bool is_packed = file.extension() == ".gz" || file.extension() == ".xz";
  std::string name = is_packed ? file.stem() : file.filename();
  check(name.ends_with(ending), ErrorKind::kIo,
        "[order_embeddings] {}: expected a folder, or a file *{}, plain, .gz or .xz", file.string(),
        ending);
  name.resize(name.size() - ending.size());
  return name;
}

CaptionCorpus read_with_features(const CaptionFolder& from, bool lower_case) {
  CaptionCorpus corpus;
  corpus.name = "captions";
  corpus.origin = from.place.string();
  corpus.train = read_split(from, "train", lower_case);
  corpus.valid = read_split(from, "dev", lower_case);
  const std::int64_t train = corpus.train.features.shape()[1],
                     valid = corpus.valid.features.shape()[1];
  check(train == valid, ErrorKind::kBadInput,
        "[order_embeddings] {}: expected features of one width, got {} for train and {} for dev",
        corpus.origin, train, valid);
  corpus.test = [=] { return read_split(from, "test", lower_case); };
  return corpus;
}

// Only captions ---------------------------------------------------------------------------------

// Line i of each of the five files is of image i.
std::vector<std::string> read_references(const fs::path& place, std::string_view stem,
                                         bool lower_case) {
  std::array<std::vector<std::string>, kCaptionsAnImage> files;
  for (std::size_t k = 0; k < files.size(); ++k) {
    const fs::path path = io::require_packed(kTask, place, fmt::format("{}{}", stem, k));
    files[k] = read_caption_lines(path, lower_case);
    check(files[k].size() == files[0].size(), ErrorKind::kBadInput,
          "[order_embeddings] {}: expected {} lines, as the file of the first captions has, got {}",
          text::place(path.string(), std::ssize(files[k])), files[0].size(), files[k].size());
  }
  std::vector<std::string> captions;
  for (std::size_t i = 0; i < files[0].size(); ++i) {
    for (auto& file : files) captions.push_back(std::move(file[i]));
  }
  return captions;
}

fs::path find_references(const fs::path& folder, const std::string& stem) {
  for (const std::string_view place : kPlaces) {
    if (io::find_packed(folder / place / (stem + "0"))) return folder / place;
  }
  fail(ErrorKind::kIo,
       "[order_embeddings] {}: expected {}0 to 4, plain, .gz or .xz, there or in its folder "
       "captions or coco, got none of them{}",
       folder.string(), stem, io::near_misses(folder, {"reference", "cap"}));
}

DescribedImages with_synthetic_features(std::vector<std::string> captions) {
  DescribedImages images;
  images.features = synthetic_features(captions);
  images.captions = std::move(captions);
  return images;
}

constexpr const char* kSyntheticName = "captions with SYNTHETIC features";

CaptionCorpus read_without_features(const fs::path& folder, bool lower_case) {
  const fs::path place = find_references(folder, "coco_dev_reference");
  std::vector<std::string> all = read_references(place, "coco_dev_reference", lower_case);
  const std::int64_t images = std::ssize(all) / kCaptionsAnImage, train = images * 4 / 5;
  check(train >= 1, ErrorKind::kBadInput,
        "[order_embeddings] {}: expected at least 2 images, got {}", place.string(), images);
  const auto cut = all.begin() + std::ptrdiff_t(train * kCaptionsAnImage);
  CaptionCorpus corpus;
  corpus.name = kSyntheticName;
  corpus.origin =
      fmt::format("{} (no pixels: features are made of words of the captions)", place.string());
  corpus.train = with_synthetic_features({all.begin(), cut});
  corpus.valid = with_synthetic_features({cut, all.end()});
  corpus.test = [=] {
    return with_synthetic_features(read_references(place, "coco_reference", lower_case));
  };
  return corpus;
}

// One split ----------------------------------------------------------------------------------

constexpr std::array<std::string_view, 3> kCaptionParts = {"train", "dev", "test"};

std::string_view caption_part(task::Split split) { return kCaptionParts[std::size_t(split)]; }

DescribedImages read_one_split(const fs::path& source, const CaptionFileOptions& options) {
  const bool is_file = fs::is_regular_file(source);
  if (options.synthetic) {
    const std::string stem = is_file ? stem_of_file(source, "0") : "coco_reference";
    const fs::path place = is_file ? source.parent_path() : find_references(source, stem);
    return with_synthetic_features(read_references(place, stem, options.lower_case));
  }
  if (is_file) {
    const fs::path features = source.parent_path() / (stem_of_file(source, "_caps.txt") + "_ims");
    return read_described(source, features, options.lower_case);
  }
  const std::string_view part = caption_part(*options.only);
  const std::optional<CaptionFolder> found = find_captions(source, part);
  check(found.has_value(), ErrorKind::kIo,
        "[order_embeddings] {}: expected {}_caps.txt, plain, .gz or .xz, there or in its folder "
        "captions or coco, got none of them{}",
        source.string(), part, io::near_misses(source, {"cap", "_ims"}));
  return read_split(*found, part, options.lower_case);
}

CaptionCorpus one_split(const fs::path& source, const CaptionFileOptions& options) {
  CaptionCorpus corpus;
  corpus.name = options.synthetic ? kSyntheticName : "captions";
  corpus.origin = source.string();
  corpus.put(*options.only, read_one_split(source, options));
  return corpus;
}

}  // namespace

Tensor read_features(const fs::path& file) {
  Tensor features = file.extension() == ".safetensors"
                        ? read_one_tensor(file)
                        : io::parse_npy(io::read_file(file, kMaxFeatureBytes),
                                        "[order_embeddings] " + file.string());
  expect_features(features, file);
  scale_to_unit_length(features);
  return features;
}

CaptionCorpus read_captions(const fs::path& folder, const CaptionFileOptions& options) {
  // The files of synthetic training and validation are cut out of the same ones.
  const bool is_cut = options.synthetic && options.only != task::Split::kTest;
  if (options.only && (!is_cut || fs::is_regular_file(folder))) return one_split(folder, options);
  if (options.synthetic) return read_without_features(folder, options.lower_case);
  const std::optional<CaptionFolder> found = find_captions(folder, "train");
  check(found.has_value(), ErrorKind::kIo,
        "[order_embeddings] {}: expected train_caps.txt, plain, .gz or .xz, there or in its folder "
        "captions or coco, got none of them (model.features=synthetic takes captions without "
        "features){}",
        folder.string(), io::near_misses(folder, {"cap", "_ims"}, "none is called train_caps.txt"));
  return read_with_features(*found, options.lower_case);
}

}  // namespace keel::models
