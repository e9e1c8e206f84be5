// NumPy's files: what NumPy writes, what it reads, and every way an archive can lie.
#include "frontend/io/npz.h"

#include <cstring>

#include "src/core/rng.h"
#include "tests/frontend/io/raw_bytes.h"
#include "tests/support/cost.h"
#include "tests/support/input_checks.h"

namespace keel::io {
namespace {

using test::refuses;

using namespace std::string_literals;

// numpy.savez_compressed(file, x=[[1, 2.5], [-3, 0]] as f4, n=[7, -1] as i8), of NumPy 2.4.
const std::string kNumpy =
    "PK\x03\x04-\x00\x00\x00\x08\x00\x00\x00!\x00\xd7\x91\xc4\xc6\xff\xff\xff\xff\xff\xff\xff"
    "\xff\x05\x00\x14\x00x.npy\x01\x00\x10\x00\x90\x00\x00\x00\x00\x00\x00\x00U\x00\x00\x00\x00"
    "\x00\x00\x00\x9b\xec\x17\xea\x1b\x10\xc9\xc8P\xc6P\xad\x9e\x92Z\x9c\\\xa4n\xa5\xa0n\x93"
    "\x66\xa2\xae\xa3\xa0\x9e\x96_TR\x94\x98\x17\x9f_\x94\x92\x0a\x12wK\xcc)N\x05\x8a\x17g$\x16"
    "\xa4\x02\xf9\x1a\x46:\x0a\x46\x9a:\x0a\xb5\x0a\x64\x03.\x06\x86\x06{\x06\x06\x05\x07\x06"
    "\x06\x87\x03\x0c@\x00\x00PK\x03\x04-\x00\x00\x00\x08\x00\x00\x00!\x00\xe0\x92\xce\xbc\xff"
    "\xff\xff\xff\xff\xff\xff\xff\x05\x00\x14\x00n.npy\x01\x00\x10\x00\x90\x00\x00\x00\x00\x00"
    "\x00\x00J\x00\x00\x00\x00\x00\x00\x00\x9b\xec\x17\xea\x1b\x10\xc9\xc8P\xc6P\xad\x9e\x92Z"
    "\x9c\\\xa4n\xa5\xa0n\x93i\xa1\xae\xa3\xa0\x9e\x96_TR\x94\x98\x17\x9f_\x94\x92\x0a\x12wK"
    "\xcc)N\x05\x8a\x17g$\x16\xa4\x02\xf9\x1a\x46:\x9a:\x0a\xb5\x0a\x14\x00.v\x06\x08\xf8\x0f"
    "\x05\x00PK\x01\x02-\x03-\x00\x00\x00\x08\x00\x00\x00!\x00\xd7\x91\xc4\xc6U\x00\x00\x00\x90"
    "\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x00\x00\x00x.npyP"
    "K\x01\x02-\x03-\x00\x00\x00\x08\x00\x00\x00!\x00\xe0\x92\xce\xbcJ\x00\x00\x00\x90\x00\x00"
    "\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x01\x8c\x00\x00\x00n.npyPK\x05"
    "\x06\x00\x00\x00\x00\x02\x00\x02\x00\x66\x00\x00\x00\x0d\x01\x00\x00\x00\x00"s;

Tensor pair() { return Tensor::of<std::uint8_t>({2}, {5, 6}); }

std::string file_of(const std::string& name, Tensor value) {
  Arrays arrays;
  arrays[name] = std::move(value);
  return npz_bytes(arrays);
}

Arrays read(std::string_view bytes) { return parse_npz(bytes, "a.npz"); }

bool refused(std::string_view bytes, std::string_view text) {
  return refuses(ErrorKind::kBadInput, text, [&] { read(bytes); });
}

// One entry "ab.npy" of 130 bytes, and where its parts lie.
const std::string kOne = file_of("ab", pair());
constexpr std::size_t kContent = 36, kDirectory = 166, kEnd = 218;

// The same two bytes in the local header and, from its flags on, in the directory.
std::string with_both(const std::string& bytes, std::size_t local, std::string_view replacement) {
  return with(with(bytes, local, replacement), kDirectory + local + 2, replacement);
}

TEST_CASE("npz: what NumPy wrote, packed and with zip64 headers") {
  const Arrays arrays = read(kNumpy);
  REQUIRE(arrays.size() == 2);
  CHECK(same(arrays.at("x"), Tensor::of<float>({2, 2}, {1, 2.5, -3, 0})));
  CHECK(same(arrays.at("n"), Tensor::of<std::int32_t>({2}, {7, -1})));
}

TEST_CASE("npz: reading what was written") {
  Arrays arrays;
  arrays["s0.x"] = Tensor::of<float>({1, 2, 1}, {-1.5F, 1e-30F});
  arrays["state.running_mean"] = Tensor::of<double>({}, {1e300});
  arrays["i"] = Tensor::of<std::int32_t>({3}, {-7, 0, 2147483647});
  arrays["u"] = Tensor::of<std::uint8_t>({1, 1, 1, 1, 1, 1, 1, 1}, {255});
  const std::string bytes = npz_bytes(arrays);
  CHECK((npz_bytes(arrays) == bytes));
  const Arrays again = read(bytes);
  REQUIRE(again.size() == arrays.size());
  for (const auto& [name, array] : arrays) CHECK(same(again.at(name), array));
  CHECK(read(npz_bytes({})).empty());
}

TEST_CASE("npz: a file that is written is the same as its bytes in memory") {
  const test::TempDir folder;
  Arrays arrays;
  arrays["a"] = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  arrays["b"] = pair();
  write_npz(folder / "a.npz", arrays);
  CHECK((test::read_bytes(folder / "a.npz") == npz_bytes(arrays)));
  write_npz(folder / "none.npz", {});
  CHECK((test::read_bytes(folder / "none.npz") == npz_bytes({})));
  Arrays wrong;
  wrong["a/b"] = pair();
  CHECK(refuses(ErrorKind::kUsage, "without slashes", [&] { write_npz(folder / "a.npz", wrong); }));
  CHECK((test::read_bytes(folder / "a.npz") == npz_bytes(arrays)));
}

#ifndef __SANITIZE_ADDRESS__

TEST_CASE("npz: writing takes no memory of its own, and reading one copy beside the file's" *
          doctest::test_suite("slow")) {
  const test::TempDir folder;
  constexpr std::int64_t kBytes = 1 << 26;
  Arrays arrays;
  arrays.emplace("x", Tensor(DType::kF32, {kBytes / 4}));
  CHECK(test::peak_growth([&] { write_npz(folder / "x.npz", arrays); }) < kBytes / 8);
  arrays.clear();
  const std::int64_t growth = test::peak_growth([&] { arrays = read_npz(folder / "x.npz"); });
  CAPTURE(growth);
  CHECK(growth > kBytes);
  CHECK(growth < kBytes * 17 / 8);
}

#endif

TEST_CASE("npz: files") {
  const test::TempDir folder;
  test::write_bytes(folder / "a.npz", kNumpy);
  CHECK(read_npz(folder / "a.npz").at("n").at(1) == -1);
  test::write_bytes(folder / "a.npz", "");
  CHECK(refuses(ErrorKind::kBadInput, "a.npz", [&] { read_npz(folder / "a.npz"); }));
  CHECK(refuses(ErrorKind::kIo, "b.npz", [&] { read_npz(folder / "b.npz"); }));
}

TEST_CASE("npz: names that cannot be written") {
  for (const std::string& name :
       {std::string(), "a/b"s, "a\\b"s, "\n"s, "\xc3\xa9"s, std::string(1000, 'a')}) {
    CHECK(refuses(ErrorKind::kUsage, "printable ASCII", [&] { file_of(name, pair()); }));
  }
}

TEST_CASE("npz: every truncation is refused") {
  for (const std::string& whole : {kNumpy, kOne}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      CHECK(refused(whole.substr(0, length), "a.npz: expected"));
    }
  }
}

TEST_CASE("npz: a changed byte is refused or changes nothing") {
  for (const std::string& whole : {kNumpy, kOne}) {
    const Arrays before = read(whole);
    int accepted = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      CAPTURE(at);
      const std::string changed = with(whole, at, raw(static_cast<char>(whole[at] ^ 0x81)));
      try {
        const Arrays after = read(changed);
        ++accepted;
        REQUIRE(after.size() == before.size());
        for (const auto& [name, array] : before) CHECK(same(after.at(name), array));
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::kBadInput);
      }
    }
    // Versions, dates and attributes.
    CHECK(accepted > 10);
    CHECK(accepted < 60);
  }
}

TEST_CASE("npz: directories that lie") {
  CHECK(refused(with(kOne, kContent + 128, "\x07"), "entry \"ab.npy\": expected content with its"));
  CHECK(refused(with(kOne, kDirectory + 16, "\1\1\1\1"), "agrees with the directory"));
  CHECK(refused(with(kOne, kDirectory + 42, u32(1)), "a local header at its place"));
  CHECK(refused(with(kOne, kDirectory + 42, u32(160)), "headers inside of the file"));
  CHECK(refused(with(kOne, kDirectory + 42, u32(1 << 30)), "content inside of the file"));
  CHECK(refused(with(kOne, kDirectory + 20, u32(131) + u32(131)), "agrees with the directory"));
  CHECK(refused(with_both(kOne, 18, u32(131) + u32(131)), "content before the directory"));
  CHECK(refused(with_both(kOne, 18, u32(131)), "equal sizes of stored content"));
  CHECK(refused(with(kOne, kDirectory + 28, "\xff\xff"), "headers inside of the file"));
  CHECK(refused(with(kOne, kDirectory + 32, "\1"), "headers inside of the file"));
  CHECK(refused(with(kOne, kEnd + 4, "\1"), "an archive of one part"));
  CHECK(refused(with(kOne, kEnd + 8, "\0\0\0\0"s), "ends after its last entry"));
  CHECK(refused(with(kOne, kEnd + 8, "\2\0\2"s), "headers inside of the file"));
  CHECK(refused(with(kOne, kEnd + 8, std::string(8, '\0')), "up to its end record"));
  CHECK(refused(with(kOne, kEnd + 12, u32(0xFFFFFFFF)), "a directory inside of the file"));
  CHECK(refused(with(kOne, kEnd + 16, u32(0xFFFFFFFF)), "a directory inside of the file"));
  CHECK(refused(with_both(kOne, 6, "\1"), "no encryption"));
  CHECK(refused(with_both(kOne, 8, "\x0c"), "stored or deflated content"));
  CHECK(refused(with_both(kOne, 8, "\x08"), "deflated content of the given sizes"));
  CHECK(refused("PK", "a whole zip archive"));
}

TEST_CASE("npz: names that play tricks") {
  for (const char* name :
       {"../npy", "ab.txt", "/b.npy", "\\b.npy", "a\n.npy", "a\0.npy", "xx.npz"}) {
    const std::string_view six(name, 6);
    const std::string bytes = with(with(kOne, 30, six), kDirectory + 46, six);
    CHECK(refused(bytes, "a plain name that ends in .npy"));
  }
}

TEST_CASE("npz: entries of one name, and entries that share bytes") {
  Arrays arrays;
  for (const char* name : {"ab", "cd"}) arrays[name] = pair();
  const std::string two = npz_bytes(arrays);
  const std::size_t directory = 2 * kDirectory;
  CHECK(read(two).size() == 2);
  const std::string twice = with(with(two, kDirectory + 30, "ab"), directory + 52 + 46, "ab");
  CHECK(refused(twice, "entry \"ab.npy\": expected one entry of this name"));
  CHECK(refused(with(twice, directory + 52 + 42, u32(0)), "content of its own, got an overlap"));
}

TEST_CASE("npz: sizes that no memory should be spent on") {
  const std::string huge = u32(0x3FFFFFFF);
  std::string bomb = with_both(kOne, 22, huge);
  CHECK(refused(with_both(bomb, 8, "\x08"), "a size that deflate can reach"));
  // 1.1 MB could expand to 2^30 bytes and more.
  const std::size_t size = 1'100'000;
  bomb = file_of("ab", Tensor(DType::kU8, {std::int64_t(size)}));
  const std::size_t directory = kContent + 128 + size;
  for (const std::size_t at : {std::size_t(8), directory + 10}) {
    bomb = with(with(bomb, at, "\x08"), at + 14, u32((1 << 30) + 1));
  }
  CHECK(refused(bomb, "expected arrays of at most 1073741824 bytes, got more"));
}

TEST_CASE("npz: sizes after the content, and sizes in the directory's zip64 field") {
  // As a writer does that cannot go back: zeros in the local header, a descriptor after the data.
  std::string streamed = with(with_both(kOne, 6, "\x08"), 14, std::string(12, '\0'));
  streamed.insert(kDirectory, 16, 'd');
  streamed = with(streamed, kEnd + 16 + 16, u32(kDirectory + 16));
  CHECK(read(streamed).at("ab").at(1) == 6);
  const auto wide = [](std::uint64_t size) {
    std::string bytes = with(kOne, kDirectory + 20, std::string(8, '\xff'));
    bytes = with(bytes, kDirectory + 30, "\x14");
    bytes.insert(kEnd, "\x01\x00\x10\x00"s + raw(size) + raw(size));
    return with(bytes, kEnd + 20 + 12, u32(52 + 20));
  };
  CHECK(read(wide(130)).at("ab").at(1) == 6);
  CHECK(refused(wide(131), "agrees with the directory"));
  CHECK(refused(wide(~0ull), "content inside of the file"));
  // A field too short for both sizes leaves the second as it is.
  CHECK(refused(with(wide(130), kEnd + 2, "\x0c"), "equal sizes of stored content"));
}

TEST_CASE("npz: random damage gives an error or well-formed arrays") {
  const Philox philox(1, stream_of("npz_test"));
  std::uint64_t draw = 0;
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    std::string bytes = round % 2 == 0 ? kNumpy : kOne;
    for (int change = 0; change < 1 + round % 5; ++change) {
      const std::uint32_t at = philox.below(draw++, static_cast<std::uint32_t>(bytes.size()));
      bytes[at] = static_cast<char>(philox.bits(draw++));
    }
    try {
      const Arrays arrays = read(bytes);
      CHECK(arrays.size() <= 2);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kBadInput);
    }
  }
}

}  // namespace
}  // namespace keel::io
