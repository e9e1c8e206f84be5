#include "models/draw/data.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"
#include "frontend/text/line_reader.h"
#include "frontend/text/text_file.h"
#include "models/mnist_data.h"
#include "src/core/error.h"
#include "src/core/rng.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kKey = 20150216;  // of what is drawn here
constexpr std::int64_t kSide = 28, kPixels = kSide * kSide;

fs::path find_amat(const fs::path& folder, const std::string& part) {
  if (fs::is_regular_file(folder)) return folder;  // that is evaluated
  const std::string name = fmt::format("binarized_mnist_{}.amat", part);
  for (const fs::path& place : {folder, folder / "binarized_mnist", folder / "mnist"}) {
    if (const auto found = io::find_packed(place / name)) return *found;
  }
  fail(
      ErrorKind::kIo,
      "[draw] {}: expected {}, plain, .gz or .xz, there or in its folder binarized_mnist or mnist, "
      "got none of them; model.binarize=threshold or sampled takes the files of MNIST{}",
      folder.string(), name, io::near_misses(folder, {".amat"}));
}

// Appends the 784 digits of a line.
void append_digits(std::vector<std::uint8_t>& pixels, std::string_view line,
                   const std::string& place) {
  const std::vector<std::string_view> words = text::words_of(line);
  check(std::ssize(words) == kPixels, ErrorKind::kBadInput, "{}: expected {} digits, got {}", place,
        kPixels, words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    check(words[i] == "0" || words[i] == "1", ErrorKind::kBadInput,
          "{}: digit {}: expected 0 or 1, got '{}'", place, i + 1, words[i].substr(0, 20));
    pixels.push_back(words[i] == "1" ? 1 : 0);
  }
}

// Images u8 (n, 28, 28) of 0 and 1, all of them so many times, with their numbers.
data::TensorDataset numbered(std::string source, std::vector<std::uint8_t> pixels,
                             std::int64_t times) {
  const auto once = std::ptrdiff_t(pixels.size());
  const std::int64_t n = once / kPixels * times;
  pixels.resize(std::size_t(n * kPixels));
  for (std::ptrdiff_t at = once; at < std::ssize(pixels); at += once) {
    std::copy_n(pixels.begin(), once, pixels.begin() + at);
  }
  std::vector<std::int32_t> numbers;
  for (std::int64_t row = 0; row < n; ++row) numbers.push_back(std::int32_t(row));
  data::TensorDataset images(std::move(source));
  images.add("image", Tensor::of<std::uint8_t>({n, kSide, kSide}, pixels));
  images.add("number", Tensor::of<std::int32_t>({n}, numbers));
  return images;
}

data::TensorDataset read_amat(const fs::path& folder, const std::string& part, std::int64_t rows,
                              std::int64_t times) {
  const fs::path path = find_amat(folder, part);
  text::LineReader reader(path);
  std::vector<std::uint8_t> pixels;
  while (const std::optional<text::Line> line = reader.next()) {
    if (rows > 0 && std::ssize(pixels) == rows * kPixels) break;
    append_digits(pixels, line->text, "[draw] " + text::place(path.string(), line->number));
  }
  check(!pixels.empty(), ErrorKind::kBadInput, "[draw] {}: expected images, got none",
        path.string());
  return numbered(path.string(), std::move(pixels), times);
}

data::TensorDataset binarized(const data::TensorDataset& digits, Binarize binarize,
                              std::string_view part, std::int64_t times) {
  const std::span<const std::uint8_t> grey = digits.column("image").as<std::uint8_t>();
  const Philox random(kKey, stream_of(fmt::format("draw.binarize.{}", part)));
  const bool samples = binarize == Binarize::kSampled;
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < grey.size(); ++i) {
    const bool is_one = samples ? random.uniform(i) * 255 < double(grey[i]) : grey[i] >= 128;
    pixels.push_back(is_one ? 1 : 0);
  }
  return numbered(fmt::format("{}, {}", digits.source(), samples ? "sampled" : "thresholded"),
                  std::move(pixels), times);
}

}  // namespace

std::vector<data::TableColumn> draw_columns() {
  return {{"image", DType::kF32, {kSide, kSide}}, {"number", DType::kI32}};
}

std::unique_ptr<task::Splits> load_binary_digits(const task::DataRequest& request,
                                                 Binarize binarize, std::int64_t test_samples) {
  if (binarize != Binarize::kFixed) {
    return load_digits(request, Validation::kLast, draw_columns(),
                       [=](const data::TensorDataset& digits, std::string_view part) {
                         return binarized(digits, binarize, part,
                                          part == "test" ? test_samples : 1);
                       });
  }
  check(request.source != "builtin", ErrorKind::kUsage,
        "model.binarize: expected threshold or sampled for built-in digits, got fixed");
  const auto part = [folder = fs::path(request.source)](const char* name, std::int64_t rows,
                                                        std::int64_t times) {
    return [=] { return read_amat(folder, name, rows, times); };
  };
  return std::make_unique<data::TableSplits>(draw_columns(), part("train", request.train_rows, 1),
                                             part("valid", 0, 1), part("test", 0, test_samples));
}

}  // namespace keel::models
