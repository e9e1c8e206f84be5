// Every reader takes or refuses its corpus, whole, cut anywhere and damaged: what the fuzzer does
// for as long as it is given, done briefly wherever the tests run.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "src/core/error.h"
#include "src/core/rng.h"
#include "tests/fuzz/target.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thoroughness.h"

namespace keel::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = KEEL_SOURCE "/tests/fuzz/corpus";

std::vector<std::string> inputs_of(std::string_view target) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(kCorpus / target)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> inputs;
  for (const fs::path& path : paths) inputs.push_back(test::read_bytes(path));
  return inputs;
}

// A few changes of the kinds that a fuzzer makes, drawn by number.
std::string damaged(std::string bytes, const std::string& other, std::uint64_t number) {
  const Philox random(7, stream_of("fuzz"));
  auto draw = [&, at = number * 64](std::size_t below) mutable {
    return std::size_t(random.uniform(at++) * double(below));
  };
  for (std::size_t changes = 1 + draw(4); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = draw(bytes.size());
    switch (draw(5)) {
      case 0:
        bytes[at] = char(bytes[at] ^ (1 << draw(8)));
        break;
      case 1:
        bytes[at] = char(draw(256));
        break;
      case 2:
        bytes.erase(at, 1 + draw(8));
        break;
      case 3:
        bytes.insert(at, bytes.substr(draw(bytes.size()), draw(16)));
        break;
      default:
        bytes = bytes.substr(0, at) + other.substr(std::min(draw(other.size() + 1), other.size()));
    }
  }
  return bytes;
}

void check_target(const Target& target, std::uint64_t changes) {
  const std::vector<std::string> inputs = inputs_of(target.name);
  CHECK(inputs.size() >= 2);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    CAPTURE(i);
    const std::string& input = inputs[i];
    CHECK_NOTHROW(run_target(target, input));
    const std::size_t stride = 1 + input.size() / 64;
    for (std::size_t size = 0; size < input.size(); size += stride) {
      CHECK_NOTHROW(run_target(target, input.substr(0, size)));
    }
    for (std::uint64_t change = 0; change < changes; ++change) {
      CAPTURE(change);
      const std::string& other = inputs[change % inputs.size()];
      CHECK_NOTHROW(run_target(target, damaged(input, other, i << 32 | change)));
    }
  }
}

TEST_CASE("fuzz: every reader takes or refuses its corpus, cut and damaged" *
          doctest::test_suite("slow")) {
  const std::uint64_t changes = test::is_thorough() ? 5000 : 50;
  for (const Target& target : all_targets()) {
    CAPTURE(std::string(target.name));
    check_target(target, changes);
  }
}

TEST_CASE("fuzz: every folder of the corpus belongs to a reader") {
  const std::vector<Target> targets = all_targets();
  for (const auto& entry : fs::directory_iterator(kCorpus)) {
    CAPTURE(entry.path());
    CHECK(std::ranges::count(targets, entry.path().filename().string(), &Target::name) == 1);
  }
}

void read_with_a_bug(std::string_view bytes) {
  if (bytes == "throw") throw std::out_of_range("bug");
  check(bytes != "bug", ErrorKind::kInternal, "bug");
  fail(ErrorKind::kBadInput, "refused");
}

TEST_CASE("fuzz: refusals are right, other exceptions and bugs are findings") {
  const Target target{"bug", read_with_a_bug};
  CHECK_NOTHROW(run_target(target, "anything"));
  CHECK_THROWS_AS(run_target(target, "bug"), std::logic_error);
  CHECK_THROWS_AS(run_target(target, "throw"), std::out_of_range);
}

}  // namespace
}  // namespace keel::fuzz
