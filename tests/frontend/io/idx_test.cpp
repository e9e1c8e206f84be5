// IDX files: the bytes of the format, and every way a header or payload can be wrong.
#include "frontend/io/idx.h"

#include <vector>

#include "src/core/rng.h"
#include "tests/frontend/io/raw_bytes.h"
#include "tests/support/input_checks.h"

namespace keel::io {
namespace {

using test::gzip;
using test::refuses;

using test::read_bytes;
using test::TempDir;
using test::write_bytes;
using namespace std::string_literals;

// Two images of 2 x 3, and four labels.
const std::string kImages =
    "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03"
    "\x00\x01\x02\x03\x04\x05\xfa\xfb\xfc\xfd\xfe\xff"s;
const std::string kLabels = "\0\0\x08\x01\0\0\0\x04\x07\x00\x09\x03"s;

struct Files {
  TempDir folder;

  Tensor images(std::string_view bytes) {
    write_bytes(folder / "images", bytes);
    return read_idx_images(folder / "images");
  }
  Tensor labels(std::string_view bytes, std::int32_t classes = 10) {
    write_bytes(folder / "labels", bytes);
    return read_idx_labels(folder / "labels", classes);
  }
  bool images_refused(std::string_view bytes, std::string_view text) {
    return refuses(ErrorKind::kBadInput, text, [&] { images(bytes); });
  }
  bool labels_refused(std::string_view bytes, std::string_view text) {
    return refuses(ErrorKind::kBadInput, text, [&] { labels(bytes); });
  }
};

TEST_CASE_FIXTURE(Files, "idx: images and labels") {
  for (const std::string& bytes : {kImages, gzip(kImages)}) {
    const Tensor read = images(bytes);
    CHECK(read.type() == TensorType{DType::kU8, {2, 2, 3}});
    CHECK(read.at(5) == 5);
    CHECK(read.at(6) == 0xfa);
    CHECK(read.at(11) == 0xff);
  }
  for (const std::string& bytes : {kLabels, gzip(kLabels)}) {
    const Tensor read = labels(bytes);
    CHECK(read.type() == TensorType{DType::kI32, {4}});
    const std::span<const std::int32_t> values = read.as<std::int32_t>();
    CHECK(std::vector(values.begin(), values.end()) == std::vector<std::int32_t>{7, 0, 9, 3});
  }
}

TEST_CASE_FIXTURE(Files, "idx: writing what was read gives the same bytes") {
  write_idx_images(folder / "out", images(kImages));
  CHECK(read_bytes(folder / "out") == kImages);
  write_idx_labels(folder / "out", labels(kLabels));
  CHECK(read_bytes(folder / "out") == kLabels);
}

TEST_CASE_FIXTURE(Files, "idx: every truncation is refused, plain and packed") {
  for (const std::string& whole : {kImages, gzip(kImages)}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      CHECK(images_refused(whole.substr(0, length), "images: expected"));
    }
  }
  for (const std::string& whole : {kLabels, gzip(kLabels)}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      CHECK(labels_refused(whole.substr(0, length), "labels: expected"));
    }
  }
}

TEST_CASE_FIXTURE(Files, "idx: headers that do not fit") {
  CHECK(images_refused(kImages.substr(0, 15), "expected a header of 16 bytes, got a file of 15"));
  CHECK(labels_refused(kLabels.substr(0, 7), "expected a header of 8 bytes, got a file of 7"));
  CHECK(images_refused(kImages + "\1", "expected 12 bytes for (2, 2, 3) after the header, got 13"));
  CHECK(labels_refused(kLabels + "\1", "expected 4 bytes for (4) after the header, got 5"));
  CHECK(images_refused(with(kImages, 3, "\1"), "expected magic 0x00000803, got 0x00000801"));
  CHECK(labels_refused(with(kLabels, 3, "\3"), "expected magic 0x00000801, got 0x00000803"));
  CHECK(images_refused(with(kImages, 2, "\x0d"), "expected magic 0x00000803, got 0x00000d03"));
}

TEST_CASE_FIXTURE(Files, "idx: sizes of zero and sizes that overflow") {
  CHECK(labels_refused("\0\0\x08\x01\0\0\0\0"s, "expected sizes of 1 or more, got (0)"));
  for (std::size_t axis = 0; axis < 3; ++axis) {
    CHECK(images_refused(with(kImages, 4 + 4 * axis, "\0\0\0\0"s), "expected sizes of 1 or more"));
  }
  const std::string huge = with(kImages, 4, std::string(12, '\xff'));
  CHECK(images_refused(huge, "expected over 2^63 bytes for (4294967295, 4294967295, 4294967295)"));
  // 2^32 * (2^32 + 4) = 2^64 + 4 * 2^32 would wrap; so would 2^31 * 2^31 * 4 = 2^64, to 0.
  const std::string wraps = "\x80\0\0\0\x80\0\0\0\0\0\0\x04"s;
  CHECK(images_refused(with(kImages.substr(0, 16), 4, wraps), "expected over 2^63 bytes"));
  CHECK(labels_refused(with(kLabels, 4, "\xff\xff\xff\xff"), "expected 4294967295 bytes"));
}

TEST_CASE_FIXTURE(Files, "idx: the first label out of range is named") {
  CHECK(labels_refused(with(kLabels, 9, "\x0a\xff"), "label 1: expected 0 to 9, got 10"));
  CHECK(labels_refused(with(kLabels, 11, "\xff"), "label 3: expected 0 to 9, got 255"));
  CHECK(labels(with(kLabels, 11, "\xff"), 256).at(3) == 255);
  CHECK(refuses(ErrorKind::kBadInput, "label 2: expected 0 to 8, got 9",
                [&] { labels(kLabels, 9); }));
}

TEST_CASE_FIXTURE(Files, "idx: random bytes give an error or a well-formed tensor") {
  const Philox philox(1, stream_of("idx_test"));
  std::uint64_t draw = 0;
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    CAPTURE(round);
    std::string bytes = kImages;
    for (std::uint32_t flips = 1 + philox.below(draw++, 3); flips > 0; --flips) {
      const std::size_t at = philox.below(draw++, static_cast<std::uint32_t>(bytes.size()));
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << philox.below(draw++, 8)));
    }
    if (images_refused(bytes, "images: expected")) continue;
    const Tensor read = read_idx_images(folder / "images");
    CHECK(read.shape().rank() == 3);
    CHECK(read.elements() == 12);
    CHECK(read.at(11) == static_cast<unsigned char>(bytes.back()));
    ++accepted;
  }
  CHECK(accepted > 100);
  CHECK(accepted < 2000);
}

TEST_CASE("idx: tensors and places that cannot be written") {
  TempDir folder;
  const auto path = folder / "out";
  const auto images = [&](DType dtype, const Shape& shape) {
    return [=] { write_idx_images(path, Tensor(dtype, shape)); };
  };
  CHECK(refuses(ErrorKind::kUsage, "(n, height, width), got (2)", images(DType::kU8, {2})));
  CHECK(refuses(ErrorKind::kUsage, "expected u8", images(DType::kF32, {2, 2, 2})));
  CHECK(refuses(ErrorKind::kUsage, "expected sizes of 1", images(DType::kU8, {2, 0, 2})));
  const auto labels = [&](const Tensor& tensor) { return [&] { write_idx_labels(path, tensor); }; };
  CHECK(refuses(ErrorKind::kUsage, "labels (n)", labels(Tensor(DType::kI32, {2, 2}))));
  CHECK(refuses(ErrorKind::kUsage, "got -1", labels(Tensor::of<std::int32_t>({2}, {0, -1}))));
  CHECK(refuses(ErrorKind::kUsage, "got 256", labels(Tensor::of<std::int32_t>({2}, {256, 0}))));
  CHECK_FALSE(std::filesystem::exists(path));

  const Tensor image(DType::kU8, {1, 100, 100});
  const auto write_to = [&](const std::filesystem::path& p) {
    return [&] { write_idx_images(p, image); };
  };
  CHECK(refuses(ErrorKind::kIo, "No such file", write_to(folder / "absent/out")));
  CHECK(refuses(ErrorKind::kIo, "expected to write 10016 bytes", write_to("/dev/full")));
}

}  // namespace
}  // namespace keel::io
