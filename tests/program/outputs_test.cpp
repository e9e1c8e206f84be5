// No subcommand writes over what it reads, over a run's files, or twice to one place; and that is
// said before anything is written.
#include "frontend/io/npz.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::read_bytes;
using test::write_bytes;
using Words = std::vector<std::string>;

const char* const kRead = "this file is read by the same command";
const char* const kOfRun = "this file belongs to a run";
const char* const kTwice = "this is the same file as";

// The command is refused, and the file is as it was.
void check_kept(const fs::path& file, const Words& command, const char* why,
                const test::ProcessOptions& options = {}) {
  CAPTURE(fmt::format("{}", fmt::join(command, " ")));
  const std::string before = read_bytes(file);
  check_refusal(run_keel(command, options), 2, why);
  CHECK((read_bytes(file) == before));
}

// Names of one file: itself, by a way round, by links of both kinds.
std::vector<std::string> names_of(const fs::path& file) {
  const fs::path folder = file.parent_path(), soft = folder / "soft", hard = folder / "hard";
  fs::create_symlink(file.filename(), soft);
  fs::create_hard_link(file, hard);
  return {file, folder / "." / file.filename(), folder / ".." / folder.filename() / file.filename(),
          soft, hard};
}

TEST_CASE("outputs: norm") {
  const test::TempDir temp;
  const fs::path file = temp / "case.npz";
  io::Arrays arrays;
  arrays["x"] = Tensor::of<float>({2, 2}, {1, 2, 3, 5});
  write_bytes(file, io::npz_bytes(arrays));
  for (const std::string& name : names_of(file)) {
    check_kept(file, {"norm", "layernorm", "--in", file, "--out", name}, kRead);
  }
  check_refusal(run_keel({"norm", "layernorm", "--in", file, "--out", temp / "no/out.npz"}), 4,
                "there is no folder ");
  CHECK(run_keel({"norm", "layernorm", "--in", file, "--out", temp / "out.npz"}).code == 0);
}

TEST_CASE("outputs: text") {
  const test::TempDir temp;
  const fs::path a = temp / "a", b = temp / "b";
  write_bytes(a, "ab ab ab\n");
  write_bytes(b, "cd cd cd\n");
  for (const std::string& name : names_of(b)) {
    check_kept(b, {"text", "vocab", a, b, "--output", name}, kRead);
    check_kept(b, {"text", "bpe", "learn", a, b, "--output", name}, kRead);
    check_kept(b, {"text", "clean", a, b, temp / "c", name}, kRead);
    check_kept(b, {"text", "clean", a, b, name, temp / "c"}, kRead);
  }
  CHECK_FALSE(fs::exists(temp / "c"));
  check_refusal(run_keel({"text", "clean", a, b, temp / "c", temp / "./c"}), 2, kTwice);
  CHECK_FALSE(fs::exists(temp / "c"));
  // A filter that appends to what it reads would never end.
  check_kept(a, {"text", "lower"}, "standard output is the file that standard input reads",
             {.in = a, .out = a});
  CHECK(run_keel({"text", "clean", a, b, temp / "c", temp / "d", "--min", "1"}).code == 0);
  CHECK(run_keel({"text", "vocab", a, "--output", temp / "c"}).code == 0);
}

TEST_CASE("outputs: predict and eval" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const std::string folder = temp / "run";
  const std::string data = temp / "data";
  fs::copy(test::small_treebank(), data);
  test::train_in(
      folder, test::small_job({"train.max_steps=1", "data.source=" + data}, "dependency_parser"));
  const fs::path best = temp / "run/checkpoints/best.safetensors";
  write_bytes(temp / "in", "noun1_NN verb1_VB\n");
  const auto predict = [&](const std::string& output) {
    return Words{"predict", folder, "--output", output};
  };
  check_kept(best, predict(best), kOfRun, {.in = temp / "in"});
  fs::copy_file(best, temp / "kept.safetensors");
  for (const std::string& name : names_of(temp / "kept.safetensors")) {
    for (const char* command : {"predict", "eval"}) {
      check_kept(temp / "kept.safetensors", {command, temp / "kept.safetensors", "--output", name},
                 kRead);
    }
  }
  check_kept(test::step_file(folder, 1), predict(test::step_file(folder, 1)), kOfRun);
  check_kept(temp / "in", predict(temp / "in"), kRead, {.in = temp / "in"});
  for (const char* name : {"config.toml", "metrics.jsonl", "result.json"}) {
    check_kept(fs::path(folder) / name, predict(fs::path(folder) / name), kOfRun);
    check_kept(fs::path(folder) / name, {"eval", folder, "--output", fs::path(folder) / name},
               kOfRun);
  }
  check_kept(fs::path(data) / "test.conllu",
             {"eval", folder, "--output", fs::path(data) / "test.conllu"}, kRead);
  CHECK(run_keel({"eval", folder, "--output", temp / "out"}).code == 0);
  CHECK(run_keel({"eval", folder, "--output", temp / "out"}).code == 0);  // over its own is fine
  CHECK(run_keel(predict(temp / "run/parsed"), {.in = temp / "in"}).code == 0);
}

TEST_CASE("outputs: predict of no lines writes an empty file, or an empty list") {
  const test::TempDir temp;
  test::train_in(temp / "run", test::small_job({"train.max_steps=1"}, "text_classifier"));
  write_bytes(temp / "out", "of an earlier run");
  const auto none = [&](Words more) {
    more.insert(more.begin(), {"predict", temp / "run"});
    return run_keel(more);
  };
  CHECK(none({"--output", temp / "out"}).code == 0);
  CHECK(read_bytes(temp / "out") == "");
  CHECK(json_of(none({"--json"})) == Json::array());
  CHECK(none({}).out == "");
}

TEST_CASE("outputs: compare") {
  const test::TempDir temp;
  const Words op{"compare", "op", "add"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), op.begin(), op.end());
    return more;
  };
  REQUIRE(run_keel(with({"--export", temp / "start.npz"})).code == 0);
  const fs::path file = temp / "start.npz";
  for (const char* option : {"--junit", "--html", "--export"}) {
    check_kept(file, with({"--against", file, option, file}), kRead);
  }
  check_refusal(run_keel(with({"--junit", temp / "a", "--html", temp / "a"})), 2, kTwice);
  CHECK_FALSE(fs::exists(temp / "a"));
}

}  // namespace
}  // namespace keel::cli
