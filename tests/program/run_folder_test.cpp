// A run's folder belongs to one run and to one process at a time, and what lies in it is looked at
// before it is used.
#include <csignal>
#include <limits>

#include "frontend/io/safetensors.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::Process;
using test::read_bytes;
using test::small_train;
using test::step_file;
using test::write_bytes;
using Words = std::vector<std::string>;

TEST_CASE("run folder: while a run trains nobody else trains there, and its process is named") {
  const test::TempDir temp;
  const std::string folder = temp / "run";
  Process process(small_train(folder, {"train.epochs=100000", "train.checkpoint_every=1"}));
  REQUIRE(wait_for_file(step_file(folder, 3), process));
  const std::string held =
      fmt::format("process {} (keel train) works in this folder", process.id());
  const Words resume{"train", "--quiet", "--resume", folder, "--set", "train.max_steps=5"};
  check_refusal(run_keel(resume), 4, held);
  check_refusal(run_keel(small_train(folder)), 2, "holds a run already");
  process.signal(SIGKILL);
  process.wait();
  // The lock of a killed process is free.
  CHECK(run_keel({"train", "--quiet", "--resume", folder, "--set", "train.max_steps=1"}).code == 0);
  CHECK_FALSE(fs::exists(fs::path(folder) / "lock"));
}

TEST_CASE("run folder: two that start at once do not mix" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const auto arguments = small_train(temp / "run", {"train.epochs=60"});
  Process first(arguments), second(arguments);
  const ProcessResult a = first.wait(), b = second.wait();
  CAPTURE(a.err + b.err);
  CHECK(a.code + b.code > 0);
  const ProcessResult& lost = a.code == 0 ? b : a;
  CHECK((a.code == 0 || b.code == 0));
  const bool is_said =
      holds(lost.err, " works in this folder") || holds(lost.err, "holds a run already");
  CHECK(is_said);
  CHECK((lost.code == 4 || lost.code == 2));
  CHECK(fs::exists(temp / "run/result.json"));
}

// The name of the run's file for TensorBoard.
std::string event_file(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("events.out.tfevents.")) return name;
  }
  return "";
}

TEST_CASE("run folder: what is left of a run is not written over" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const auto arguments = small_train(temp / "run", {"train.epochs=1"});
  REQUIRE(run_keel(arguments).code == 0);
  fs::remove_all(temp / "run/checkpoints");
  const std::string events = event_file(temp / "run");
  for (const std::string& kept : {std::string("metrics.jsonl"), std::string("result.json"),
                                  std::string("config.toml"), events}) {
    CAPTURE(kept);
    REQUIRE(fs::exists(temp / "run" / kept));
    check_refusal(run_keel(arguments), 2,
                  "of a run whose checkpoints are gone; give another --out");
  }
  const std::string metrics = read_bytes(temp / "run/metrics.jsonl");
  for (const std::string& gone : {std::string("config.toml"), std::string("result.json"), events}) {
    fs::remove_all(temp / "run" / gone);
    check_refusal(run_keel(arguments), 2, "of a run whose checkpoints are gone");
    CHECK(read_bytes(temp / "run/metrics.jsonl") == metrics);
  }
  fs::remove(temp / "run/metrics.jsonl");
  // Only the events, and those in the folder that earlier versions had for them.
  for (const fs::path& left : {temp / "run" / events, temp / "run/events"}) {
    left.filename() == "events" ? void(fs::create_directory(left)) : test::write_bytes(left, "x");
    check_refusal(run_keel(arguments), 2, left.filename().string() + " of a run whose checkpoints");
    fs::remove(left);
  }
  CHECK(run_keel(arguments).code == 0);  // what is left are pictures
}

// A changed tensor under a checksum that is right.
void change_tensor(const fs::path& path, const std::string& name, float value) {
  io::TensorFile file = io::read_safetensors(path);
  file.tensors.at(name).as<float>()[3] = value;
  io::write_safetensors(path, file);
}

TEST_CASE("run folder: weights that are not finite are not used, and the tensor is named" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const std::string folder = temp / "run";
  test::train_in(folder, test::small_job({"train.max_steps=1"}, "text_classifier"));
  const fs::path best = temp / "run/checkpoints/best.safetensors";
  std::string name;
  for (const auto& [tensor, type] : io::read_safetensors_info(best).tensors) {
    if (tensor.ends_with("/weight") && name.empty()) name = tensor;
  }
  REQUIRE(!name.empty());
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    change_tensor(best, name, bad);
    const std::string said = "tensor " + name + ": expected finite numbers, got ";
    check_refusal(run_keel({"predict", folder, "--text", "good5"}), 3, said);
    check_refusal(run_keel({"eval", folder}), 3, said);
  }
  change_tensor(best, name, 1);
  CHECK(run_keel({"predict", folder, "--text", "good5"}).code == 0);
}

TEST_CASE("run folder: a checkpoint of another model, or under another's name, is refused" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const std::string folder = temp / "run";
  test::train_in(folder, test::small_job({"train.epochs=1", "train.eval_every=6u"}));
  test::train_in(temp / "other", test::small_job({"train.max_steps=9"}, "text_classifier"));
  const auto put = [&](const fs::path& from, const fs::path& to) {
    fs::copy_file(from, to, fs::copy_options::overwrite_existing);
  };
  const Words resume{"train", "--quiet", "--resume", folder};
  const std::string said = "expected a checkpoint of mnist_mlp, as ";
  put(step_file(temp / "other", 9), step_file(folder, 9));
  check_refusal(run_keel(resume), 3, said);
  fs::remove(step_file(folder, 9));
  put(step_file(folder, 8), step_file(folder, 10));
  check_refusal(run_keel(resume), 3, "expected the state after step 10, as its name says, got");
  fs::remove(step_file(folder, 10));
  CHECK(run_keel(resume).code == 0);
  put(step_file(temp / "other", 9), temp / "run/checkpoints/best.safetensors");
  Words more = resume;
  more.insert(more.end(), {"--set", "train.epochs=2"});
  for (const Words& command : {more, Words{"eval", folder}, Words{"predict", folder}}) {
    check_refusal(run_keel(command), 3, said);
  }
}

TEST_CASE("run folder: a damaged file is found by whatever reads it, before it is used") {
  const test::TempDir temp;
  const std::string folder = temp / "run";
  test::train_in(folder, test::small_job({"train.epochs=1", "train.eval_every=6u"}));
  const fs::path best = temp / "run/checkpoints/best.safetensors";
  std::string bytes = read_bytes(best);
  bytes[bytes.size() - 5] ^= 0x10;
  write_bytes(best, bytes);
  const Words more{"train", "--quiet", "--resume", folder, "--set", "train.epochs=2"};
  check_refusal(run_keel(more), 3, "best.safetensors: tensor ");
  CHECK_FALSE(fs::exists(step_file(folder, 16)));
  check_refusal(run_keel({"inspect", "checkpoint", best}), 3, "expected checksum ");
  check_refusal(run_keel({"eval", folder}), 3, "expected checksum ");
}

}  // namespace
}  // namespace keel::cli
