#include "frontend/data/cifar10.h"

#include <array>
#include <map>
#include <system_error>

#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"

namespace keel::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPixelBytes = 3 * kPictureSide * kPictureSide;
constexpr std::int64_t kRecordBytes = 1 + kPixelBytes;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;  // of one file
constexpr std::uint8_t kClasses = 10;

std::string prefix_of(Part part) { return part == Part::kTrain ? "data_batch" : "test_batch"; }

// The files of a part by name without the ending of its packing. A plain file wins.
std::map<std::string, fs::path> batches_in(const fs::path& folder, const std::string& prefix) {
  std::map<std::string, fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    fs::path name = entry.path().filename();
    const bool packed = name.extension() == ".gz" || name.extension() == ".xz";
    if (packed) name = name.stem();
    if (name.extension() != ".bin" || !name.string().starts_with(prefix)) continue;
    fs::path& file = files[name.string()];
    if (file.empty() || !packed) file = entry.path();
  }
  return files;
}

void read_record(io::PackedFile& file, std::int64_t record, std::uint8_t* pixels,
                 std::int32_t& label) {
  std::byte first;
  file.read({&first, 1});
  label = std::to_integer<std::int32_t>(first);
  check(label < kClasses, ErrorKind::kBadInput,
        "[cifar10] {}: record {}, byte {}: expected a label of 0 to {}, got {}", file.name(),
        record, record * kRecordBytes, kClasses - 1, label);
  file.read(std::as_writable_bytes(std::span(pixels, kPixelBytes)));
}

// Whether a file is a pickle of Python's, of protocol 2 or later.
bool is_pickle(const fs::path& path) {
  std::array<std::byte, 2> first{};
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored) || fs::file_size(path, ignored) < 2) return false;
  io::PackedFile(path, kMostBytes).read(first);
  return first[0] == std::byte{0x80} && first[1] >= std::byte{2} && first[1] <= std::byte{9};
}

[[noreturn]] void fail_pickle(const fs::path& path) {
  fail(ErrorKind::kBadInput,
       "[cifar10] {}: expected CIFAR-10's binary version (cifar-10-binary.tar.gz, with "
       "data_batch_1.bin), got its Python version (a pickle)",
       path.string());
}

// Opens a file of whole records.
io::PackedFile open_batch(const fs::path& path) {
  io::PackedFile file(path, kMostBytes);
  if (file.size() % kRecordBytes != 0 && is_pickle(path)) fail_pickle(path);
  check(file.size() % kRecordBytes == 0, ErrorKind::kBadInput,
        "[cifar10] {}: expected whole records of {} bytes, got {} bytes", file.name(), kRecordBytes,
        file.size());
  return file;
}

}  // namespace

std::vector<std::string> cifar10_classes() {
  return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
}

fs::path find_cifar10(const fs::path& folder, Part part) {
  for (const fs::path& place : {folder, folder / "cifar-10-batches-bin", folder / "cifar10"}) {
    if (!batches_in(place, prefix_of(part)).empty()) return place;
  }
  for (const fs::path& place : {folder, folder / "cifar-10-batches-py", folder / "cifar10"}) {
    const fs::path batch = place / "data_batch_1";
    if (is_pickle(batch)) fail_pickle(batch);
  }
  return {};
}

Pictures load_cifar10(const fs::path& folder, Part part) {
  const std::string prefix = prefix_of(part);
  std::map<std::string, fs::path> paths;
  if (fs::is_regular_file(folder)) {
    paths[folder.filename()] = folder;
  } else {
    paths = batches_in(folder, prefix);
  }
  check(!paths.empty(), ErrorKind::kIo,
        "[cifar10] {}: expected files {}*.bin, plain, .gz or .xz, got none{}", folder.string(),
        prefix, io::near_misses(folder, {".bin"}, "the names have to begin as the published ones"));
  std::vector<io::PackedFile> files;
  std::int64_t rows = 0;
  for (const auto& [name, path] : paths) {
    rows += files.emplace_back(open_batch(path)).size() / kRecordBytes;
  }
  Pictures pictures = Pictures::of_size(rows);
  std::int32_t* labels = pictures.label.as<std::int32_t>().data();
  std::int64_t row = 0;
  for (io::PackedFile& file : files) {
    for (std::int64_t record = 0; record < file.size() / kRecordBytes; ++record, ++row) {
      read_record(file, record, pictures.picture(row), labels[row]);
    }
  }
  return pictures;
}

}  // namespace keel::data
