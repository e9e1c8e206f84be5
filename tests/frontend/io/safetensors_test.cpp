// Files come back as they were written, and hostile or damaged ones are refused with a reason.
#include "frontend/io/safetensors.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "frontend/io/safetensors_header.h"
#include "src/core/rng.h"
#include "tests/support/fault.h"
#include "tests/support/temp_dir.h"

using namespace keel;
using namespace keel::io;
using test::read_bytes;
using test::TempDir;
using test::write_bytes;

namespace {

constexpr SafetensorsOptions kChecked{.require_checksums = true};

TensorFile example() {
  TensorFile file;
  file.metadata = {{"step", "12"}, {"text", "quote \" line\n \u00e9 \\ end"}, {"", ""}};
  file.tensors.emplace("w", Tensor::of<float>({2, 3}, {1, -2, 3.5f, 0, 1e-40f, INFINITY}));
  file.tensors.emplace("d", Tensor::of<double>({}, {0.1}));
  file.tensors.emplace("i", Tensor::of<std::int32_t>({1, 2}, {-7, 2147483647}));
  file.tensors.emplace("bytes", Tensor::of<std::uint8_t>({3}, {0, 127, 255}));
  file.tensors.emplace("half", Tensor(DType::kBF16, {5}));
  file.tensors.emplace("none", Tensor(DType::kF32, {4, 0}));
  file.tensors.emplace("", Tensor(DType::kU8, {1, 1, 1, 1, 1, 1, 1, 1}));
  file.tensors.emplace("odd \" name \u20ac", Tensor::scalar(3));
  return file;
}

void check_equal(const TensorFile& a, const TensorFile& b) {
  CHECK(a.metadata == b.metadata);
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    CAPTURE(name);
    const Tensor& other = b.tensors.at(name);
    CHECK(tensor.type() == other.type());
    CHECK(std::memcmp(tensor.data(), other.data(), std::size_t(tensor.bytes())) == 0);
  }
}

// The length, the header and the data as a file would have them.
std::string file_of(std::string_view header, std::string_view data = "") {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8).append(header).append(data);
}

// The reader's refusal of a file of these bytes, without the file's name; empty when it takes them.
std::string refusal(const std::string& bytes, const SafetensorsOptions& options = {}) {
  static const TempDir dir;
  const std::filesystem::path path = dir / "f";
  write_bytes(path, bytes);
  try {
    read_safetensors(path, options);
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    const std::size_t at = message.find(path.string());
    REQUIRE(at != std::string::npos);
    return message.substr(at + path.string().size() + 2);
  }
}

std::string bytes_of_example() {
  const TempDir dir;
  write_safetensors(dir / "f", example());
  return read_bytes(dir / "f");
}

}  // namespace

TEST_CASE("safetensors: what is written comes back") {
  const TempDir dir;
  write_safetensors(dir / "f", example());
  check_equal(read_safetensors(dir / "f", kChecked), example());
  const TensorFileInfo info = read_safetensors_info(dir / "f", kChecked);
  CHECK(info.metadata == example().metadata);
  CHECK(info.has_checksums);
  CHECK(info.tensors.size() == 8);
  CHECK(info.tensors.at("w").text() == "f32(2, 3)");
  write_safetensors(dir / "empty", {});
  check_equal(read_safetensors(dir / "empty", kChecked), {});
}

TEST_CASE("safetensors: the bytes are fixed, and aligned") {
  TensorFile file;
  file.metadata = {{"a", "b"}};
  file.tensors.emplace("x", Tensor::of<std::uint8_t>({3}, {1, 2, 3}));
  file.tensors.emplace("y", Tensor::of<std::int32_t>({2}, {4, 5}));
  const TempDir dir;
  write_safetensors(dir / "f", file);
  const std::string bytes = read_bytes(dir / "f");
  const std::string header = R"({"__metadata__":{"keel.header_crc32":"5a2eb35d","a":"b",)"
                             R"("keel.crc32:x":"55bc801d","keel.crc32:y":"d6b621a1"},)"
                             R"("x":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},)"
                             R"("y":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})";
  CHECK(bytes.substr(8, header.size()) == header);
  CHECK(bytes.substr(8 + header.size(), 256 - 8 - header.size()).find_first_not_of(' ') ==
        std::string::npos);
  CHECK(bytes.substr(256) == std::string("\4\0\0\0\5\0\0\0\1\2\3", 11));
  write_safetensors(dir / "g", file);
  CHECK(read_bytes(dir / "g") == bytes);
}

TEST_CASE("safetensors: files of other programs are read") {
  const TempDir dir;
  // Spaces anywhere, any order of fields, escapes, no metadata, no checksums, no padding.
  const std::string header = R"({ "b" : {"data_offsets":[4,6], "shape":[2,1], "dtype":"U8"},)"
                             R"(  "\u0061":{"dtype":"F32","shape":[],"data_offsets":[0,4]} } )";
  write_bytes(dir / "f", file_of(header, std::string("\0\0\x80\x3f\x05\x06", 6)));
  const TensorFile file = read_safetensors(dir / "f");
  CHECK(file.tensors.at("a").at(0) == 1);
  CHECK(file.tensors.at("b").at(1) == 6);
  CHECK_FALSE(read_safetensors_info(dir / "f").has_checksums);
  CHECK(refusal(read_bytes(dir / "f"), kChecked) == "expected checksums, got none");
  CHECK(refusal(file_of("{}")) == "");
  CHECK(refusal(file_of(R"({"__metadata__":{}})")) == "");
}

TEST_CASE("safetensors: every truncation and every extension is refused") {
  const std::string bytes = bytes_of_example();
  CHECK(refusal(bytes, kChecked) == "");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK(refusal(bytes.substr(0, size)) != "");
  }
  CHECK(refusal(bytes + '\0') == "data: expected 58 bytes, as the header says, got 59");
}

TEST_CASE("safetensors: every changed byte is detected" * doctest::test_suite("slow")) {
  const std::string bytes = bytes_of_example();
  const Philox random(1, stream_of("flips"));
  const auto refused = [&](std::size_t at, char to) {
    std::string damaged = bytes;
    damaged[at] = to;
    return refusal(damaged, kChecked) != "";
  };
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    CAPTURE(at);
    CHECK(refused(at, static_cast<char>(bytes[at] ^ (1 << random.below(at, 8)))));
  }
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::size_t at = random.below(10000 + 2 * i, std::uint32_t(bytes.size()));
    const char to = static_cast<char>(random.below(10001 + 2 * i, 256));
    CAPTURE(at);
    CHECK(refused(at, to) == (to != bytes[at]));
  }
  // White space for white space keeps the JSON the same.
  CHECK(refused(bytes.find("  "), '\t'));
}

TEST_CASE("safetensors: a program that removes a checksum needs to remove them all") {
  const std::string bytes = bytes_of_example();
  for (std::string_view key : {"keel.header_crc32", "keel.crc32:w"}) {
    std::string damaged = bytes;
    damaged[damaged.find(key)] = 'K';
    CHECK(refusal(damaged) != "");
  }
  const std::string tensor = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  CHECK(refusal(file_of(R"({"__metadata__":{"keel.crc32:w":"a505df1b"},)" + tensor + "}", "\1")) ==
        "tensor \"w\": expected checksums of all tensors and the header or none, got only some of "
        "them");
  CHECK(refusal(file_of(R"({"__metadata__":{"a":"b","keel.header_crc32":"00000000"}})")) ==
        "header: expected to begin with its checksum of 8 digits, got \"00000000\"");
  CHECK(refusal(file_of(R"({"__metadata__":{"keel.header_crc32":"00000000"}})"))
            .starts_with("header: expected checksum \"00000000\", got "));
  CHECK(refusal(file_of(R"({"__metadata__":{"keel.header_crc32":""}})")) ==
        "header: expected to begin with its checksum of 8 digits, got \"\"");
}

TEST_CASE("safetensors: header lengths are checked before anything is allocated") {
  CHECK(refusal("1234567") == "expected at least 8 bytes, got 7");
  std::string bytes = file_of("{}");
  const auto with_length = [&](std::uint64_t length) {
    std::memcpy(bytes.data(), &length, 8);
    return refusal(bytes);
  };
  CHECK(with_length(3) == "header length: expected at most 2, got 3");
  CHECK(with_length(std::numeric_limits<std::uint64_t>::max()) ==
        "header length: expected at most 2, got 18446744073709551615");
  CHECK(with_length(std::uint64_t(1) << 63) ==
        "header length: expected at most 2, got 9223372036854775808");
  CHECK(with_length(0).starts_with("header: expected '{' at byte 8, got"));

  const TempDir dir;  // a sparse file of 200 MB that claims 100 MB and one byte of header
  const std::uint64_t length = kMaxHeaderBytes + 1;
  write_bytes(dir / "f", {reinterpret_cast<const char*>(&length), 8});
  std::filesystem::resize_file(dir / "f", 200'000'000);
  CHECK_THROWS_WITH_AS(read_safetensors(dir / "f"),
                       fmt::format("[safetensors] {}: header length: expected at most 100000000, "
                                   "got 100000001",
                                   (dir / "f").string())
                           .c_str(),
                       Error);
}

TEST_CASE("safetensors: only regular files are read") {
  const TempDir dir;
  CHECK_THROWS_WITH_AS(
      read_safetensors(dir.path()),
      ("[file] " + dir.path().string() + ": expected a regular file, got another kind").c_str(),
      Error);
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_AS(read_safetensors(dir / "pipe"), Error);
  try {
    read_safetensors(dir / "missing");
    FAIL("expected an error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kIo);
    CHECK(std::string(error.what()).ends_with("missing: open: No such file or directory"));
  }
}

TEST_CASE("safetensors: what the format cannot hold is not written") {
  const TempDir dir;
  const auto message = [&](const TensorFile& file) -> std::string {
    try {
      write_safetensors(dir / "f", file);
      return "";
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kUsage);
      CHECK_FALSE(std::filesystem::exists(dir / "f"));
      return error.what();
    }
  };
  TensorFile file;
  file.tensors.emplace("__metadata__", Tensor::scalar(1));
  CHECK(message(file).starts_with("[safetensors] tensor: expected a name other than"));
  file.tensors.clear();
  file.tensors.emplace("\xff", Tensor::scalar(1));
  CHECK(message(file).starts_with("[safetensors] name or metadata: expected UTF-8, got"));
  file.tensors.clear();
  for (std::string key : {"keel.header_crc32", "keel.crc32:w"}) {
    file.metadata = {{key, "x"}};
    CHECK(
        message(file).starts_with("[safetensors] metadata \"" + key + "\": expected another key"));
  }
  file.metadata = {{"a", "\x80"}};
  CHECK(message(file).starts_with("[safetensors] name or metadata: expected UTF-8, got"));
}

TEST_CASE("safetensors: a failing save leaves the earlier file") {
  const TempDir dir;
  write_safetensors(dir / "f", example());
  const std::string before = read_bytes(dir / "f");
  TensorFile other;
  other.tensors.emplace("x", Tensor::scalar(1));
  for (int at = 0; at < 4; ++at) {
    CAPTURE(at);
    test::FaultGuard guard({.at = at, .error = ENOSPC});
    CHECK_THROWS_AS(write_safetensors(dir / "f", other), Error);
    CHECK(read_bytes(dir / "f") == before);
  }
}
