// Checkpoints survive failures, crashes and damage, and only the right ones are removed.
#include "frontend/train/checkpoint_store.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/fault.h"
#include "tests/support/temp_dir.h"

using namespace keel;
using namespace keel::train;
using test::Fault;
using test::FaultGuard;
using test::read_bytes;
using test::TempDir;
using test::write_bytes;

namespace {

// A store of its own directory that remembers its warnings.
struct Fixture {
  explicit Fixture(std::size_t keep)
      : keep(keep),
        store(dir.path(), [this](const std::string& text) { warnings.push_back(text); }) {}

  // Saves, and keeps the latest `keep` of the steps saved so far.
  void save(std::int64_t step, const io::TensorFile& content, bool is_best) {
    store.save(step, content, is_best, kept);
    std::erase_if(kept, [&](std::int64_t earlier) { return earlier >= step; });
    kept.push_back(step);
    if (kept.size() == keep) kept.erase(kept.begin());
  }

  // Names of all files, in order.
  std::string files() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(dir.path())) {
      names.push_back(file.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return fmt::format("{}", fmt::join(names, " "));
  }

  TempDir dir;
  std::size_t keep;
  std::vector<std::int64_t> kept;  // beside the next one
  std::vector<std::string> warnings;
  CheckpointStore store;
};

io::TensorFile content(float value) {
  io::TensorFile file;
  file.metadata = {{"value", fmt::format("{}", value)}};
  file.tensors.emplace("w", Tensor::of<float>({3}, {value, value + 1, value + 2}));
  file.tensors.emplace("count", Tensor::of<std::int32_t>({}, {std::int32_t(value)}));
  return file;
}

float value_of(const std::optional<Checkpoint>& checkpoint) {
  REQUIRE(checkpoint.has_value());
  return float(checkpoint->content.tensors.at("w").at(0));
}

// Changes one bit of the last byte, which belongs to tensor w.
void damage(const std::filesystem::path& path) {
  std::string bytes = read_bytes(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_bytes(path, bytes);
}

}  // namespace

TEST_CASE("checkpoint_store: keeps the last and the best") {
  Fixture f(2);
  CHECK_FALSE(f.store.latest());
  f.save(5, content(5), true);
  CHECK(f.files() == "best.safetensors step-00000005.safetensors");
  f.save(10, content(10), false);
  f.save(15, content(15), false);
  f.save(123456789, content(20), false);
  CHECK(f.files() == "best.safetensors step-00000015.safetensors step-123456789.safetensors");
  CHECK(f.store.paths() == std::vector<std::filesystem::path>{f.dir / "step-123456789.safetensors",
                                                              f.dir / "step-00000015.safetensors"});
  CHECK(f.store.latest()->step == 123456789);
  CHECK(value_of(f.store.latest()) == 20);
  CHECK(io::read_safetensors(f.store.best_path()).metadata.at("value") == "5");
  f.save(123456790, content(21), true);
  CHECK(io::read_safetensors(f.store.best_path()).metadata.at("value") == "21");
  CHECK(f.warnings.empty());
}

TEST_CASE("checkpoint_store: the directory is made by the first save") {
  const TempDir dir;
  CheckpointStore store(dir / "a/b", [](const std::string&) {});
  CHECK_FALSE(store.latest());
  CHECK_FALSE(std::filesystem::exists(dir / "a"));
  store.save(0, content(1), false);
  CHECK(store.latest()->step == 0);
  CHECK_THROWS_AS(store.save(-1, content(1), false), Error);
}

TEST_CASE("checkpoint_store: other files are left alone") {
  Fixture f(1);
  for (const char* name : {"step-1.safetensors", "step-00000001.safetensors.bak",
                           "step-x.safetensors", "step-0000000-1.safetensors", "notes.txt"}) {
    write_bytes(f.dir / name, "mine");
  }
  const std::string before = f.files();
  CHECK_FALSE(f.store.latest());
  f.save(7, content(7), false);
  f.save(8, content(8), false);
  CHECK(f.warnings.empty());
  std::filesystem::remove(f.dir / "step-00000008.safetensors");
  CHECK(f.files() == before);
}

TEST_CASE("checkpoint_store: a damaged newest is reported and the previous one used") {
  Fixture f(3);
  for (int step : {1, 2, 3}) f.save(step, content(float(step)), false);
  damage(f.dir / "step-00000003.safetensors");
  CHECK(value_of(f.store.latest()) == 2);
  REQUIRE(f.warnings.size() == 1);
  CHECK(f.warnings[0].find("step-00000003.safetensors: tensor \"w\": expected checksum") !=
        std::string::npos);

  std::filesystem::resize_file(f.dir / "step-00000002.safetensors", 100);
  CHECK(value_of(f.store.latest()) == 1);
  CHECK(f.warnings.size() == 3);
  write_bytes(f.dir / "step-00000001.safetensors", "");
  CHECK_FALSE(f.store.latest());
  CHECK(f.warnings.size() == 6);
}

TEST_CASE("checkpoint_store: a file without checksums is not taken for a checkpoint") {
  Fixture f(1);
  const std::string header = "{}      ";
  write_bytes(f.dir / "step-00000001.safetensors", std::string("\x08\0\0\0\0\0\0\0", 8) + header);
  CHECK_FALSE(f.store.latest());
  CHECK(f.warnings.at(0).ends_with("expected checksums, got none"));
}

TEST_CASE("checkpoint_store: a damaged later checkpoint never pushes out an intact one") {
  Fixture f(1);
  f.save(10, content(10), false);
  f.save(20, content(20), false);
  damage(f.dir / "step-00000020.safetensors");
  f.save(15, content(15), false);
  CHECK(value_of(f.store.latest()) == 15);
  f.save(20, content(21), false);  // the resumed run gets there again
  CHECK(value_of(f.store.latest()) == 21);
  CHECK(f.files() == "step-00000020.safetensors");
}

TEST_CASE("checkpoint_store: every system call of a save failing leaves a usable checkpoint") {
  Fixture f(2);
  f.save(1, content(1), true);
  f.save(2, content(2), false);
  int calls = 0;
  {
    FaultGuard guard({});
    f.save(3, content(3), true);
    calls = guard.calls();
  }
  REQUIRE(calls > 20);
  for (int at = 0; at < calls; ++at) {
    for (bool lasting : {false, true}) {
      CAPTURE(at);
      f.save(2, content(2), false);
      std::filesystem::remove(f.dir / "step-00000003.safetensors");
      bool saved = true;
      {
        FaultGuard guard({.at = at, .error = ENOSPC, .lasting = lasting, .chunk = 100});
        try {
          f.save(3, content(3), true);
        } catch (const Error& error) {
          CHECK(error.kind() == ErrorKind::kIo);
          saved = false;
        }
      }
      const float newest = value_of(f.store.latest());
      CHECK((newest == 3 || (!saved && newest == 2)));
      CHECK_NOTHROW(io::read_safetensors(f.store.best_path(), {.require_checksums = true}));
      CHECK(f.files().find("keel-tmp") == std::string::npos);
      CHECK(f.warnings.empty());
    }
  }
}

TEST_CASE("checkpoint_store: a process killed in any system call leaves a usable checkpoint") {
  Fixture f(1);
  for (int at = 0;; ++at) {
    CAPTURE(at);
    std::filesystem::remove(f.dir / "step-00000002.safetensors");
    f.save(1, content(1), false);
    const pid_t child = ::fork();
    if (child == 0) {
      FaultGuard guard({.at = at, .crash = true});
      f.save(2, content(2), true);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    const float newest = value_of(f.store.latest());
    CHECK((newest == 1 || newest == 2));
    // A run that resumes and saves cleans up the leftovers.
    f.save(3, content(3), false);
    CHECK(f.files().find("keel-tmp") == std::string::npos);
    CHECK(value_of(f.store.latest()) == 3);
    std::filesystem::remove(f.dir / "step-00000003.safetensors");
    CHECK(f.warnings.empty());
    if (WEXITSTATUS(status) == 0) {
      CHECK(at > 20);
      break;
    }
  }
}

TEST_CASE("checkpoint_store: the best is on the disk before the step that may refer to it") {
  Fixture f(1);
  f.save(1, content(1), true);
  for (int at = 0; !std::filesystem::exists(f.dir / "step-00000002.safetensors"); ++at) {
    FaultGuard guard({.at = at, .lasting = true});
    try {
      f.save(2, content(2), true);
    } catch (const Error&) {
    }
  }
  CHECK(io::read_safetensors(f.store.best_path()).metadata.at("value") == "2");
}

TEST_CASE("checkpoint_store: the average is the mean of floats and the newest of the rest") {
  Fixture f(5);
  f.save(1, content(1), false);
  f.save(2, content(2), false);
  f.save(4, content(6), false);
  const io::TensorFile mean = average_checkpoints(f.store.paths());
  CHECK(mean.tensors.at("w").as<float>()[0] == 3);
  CHECK(mean.tensors.at("w").as<float>()[2] == 5);
  CHECK(mean.tensors.at("count").as<std::int32_t>()[0] == 6);
  CHECK(mean.metadata.at("value") == "6");
  CHECK_THROWS_AS(average_checkpoints({}), Error);
}

TEST_CASE("checkpoint_store: the average of equal checkpoints is theirs, bit by bit") {
  Fixture f(7);
  io::TensorFile file;
  Tensor values(DType::kF32, {1000});
  for (std::size_t i = 0; i < 1000; ++i) values.as<float>()[i] = 1.0f / (float(i) - 300.7f);
  values.as<float>()[7] = 1e-45f;
  file.tensors.emplace("w", values.clone());
  for (int step = 1; step <= 7; ++step) f.save(step, file, false);
  const io::TensorFile mean = average_checkpoints(f.store.paths());
  CHECK(std::ranges::equal(mean.tensors.at("w").as<float>(), values.as<float>()));
}

TEST_CASE("checkpoint_store: the average is taken in f64") {
  Fixture f(3);
  int step = 0;
  for (float value : {1e8f, 1.0f, -1e8f}) {
    io::TensorFile file;
    file.tensors.emplace("w", Tensor::scalar(value));
    file.tensors.emplace("d", Tensor::of<double>({}, {1 + 1e-12 * value}));
    f.save(++step, file, false);
  }
  const io::TensorFile mean = average_checkpoints(f.store.paths());
  CHECK(mean.tensors.at("w").as<float>()[0] == 1.0f / 3);
  CHECK(mean.tensors.at("d").as<double>()[0] == doctest::Approx(1 + 1e-12 / 3).epsilon(1e-15));
}

TEST_CASE("checkpoint_store: what does not match is not averaged") {
  Fixture f(2);
  f.save(2, content(2), false);
  const auto message = [&](auto change) -> std::string {
    io::TensorFile file = content(1);
    change(file.tensors);
    f.save(1, file, false);
    try {
      average_checkpoints(f.store.paths());
      return "";
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kBadInput);
      const std::string text = error.what();
      return text.substr(text.rfind("safetensors: ") + 13);
    }
  };
  CHECK(message([](auto&) {}) == "");
  CHECK(message([](auto& tensors) { tensors.erase("w"); }) ==
        "tensor w: expected f32(3) as in the newest, got none");
  CHECK(message([](auto& tensors) {
          tensors["w"] = Tensor(DType::kF32, {1, 3});
        }) == "tensor w: expected f32(3) as in the newest, got f32(1, 3)");
  CHECK(message([](auto& tensors) { tensors["w"] = Tensor(DType::kF64, {3}); }) ==
        "tensor w: expected f32(3) as in the newest, got f64(3)");
  CHECK(message([](auto& tensors) { tensors["more"] = Tensor(DType::kF64, {3}); }) ==
        "expected 2 tensors as in the newest, got 3");
}
