// Bad input, bad options and a hostile file system: one line, the right exit code, nothing lost.
#include <sys/stat.h>
#include <unistd.h>

#include "backends/backends.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::read_bytes;
using test::small_train;
using test::step_file;
using test::write_bytes;

const std::string kImages = "train-images-idx3-ubyte", kLabels = "train-labels-idx1-ubyte";

// A copy of the small digits to spoil.
struct Data {
  test::TempDir temp;
  fs::path folder = temp / "data";

  Data() { fs::copy(test::small_digits(), folder); }

  ProcessResult train(const test::ProcessOptions& options = {}) const {
    const auto arguments =
        small_train(temp / "run", {"train.max_steps=1", "data.source=" + folder.string()});
    return run_keel(arguments, options);
  }
};

TEST_CASE("refusals: damaged data files" * doctest::test_suite("slow")) {
  const std::string images = read_bytes(test::small_digits() / kImages),
                    labels = read_bytes(test::small_digits() / kLabels);
  std::string magic = images, ten = labels, fewer = labels.substr(0, labels.size() - 1);
  magic[3] = 4;
  ten[100] = 10;
  fewer[7] = static_cast<char>(fewer[7] - 1);  // 299 of 300, and said so
  const struct {
    const char* what;
    std::string file, bytes, part;
  } rows[] = {{"truncated", kImages, images.substr(0, images.size() - 1), "after the header"},
              {"a truncated header", kImages, images.substr(0, 9), "expected a header of 16 bytes"},
              {"oversized", kImages, images + '\0', "after the header"},
              {"wrong magic", kImages, magic, "expected magic 0x00000803, got 0x00000804"},
              {"labels for images", kImages, labels, "expected magic"},
              {"other counts", kLabels, fewer, "expected 300 labels, as many as images, got 299"},
              {"label 10", kLabels, ten, "label 92: expected 0 to 9, got 10"},
              {"an empty file", kLabels, "", "empty file"},
              {"cut gzip", kLabels, std::string("\x1f\x8b\x08\0", 4), kLabels}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.what));
    const Data data;
    write_bytes(data.folder / row.file, row.bytes);
    check_refusal(data.train(), 3, row.part);
    CHECK_FALSE(fs::exists(data.temp / "run"));
  }
}

TEST_CASE("refusals: data files that cannot be read") {
  const Data directory;
  fs::remove(directory.folder / kImages);
  fs::create_directory(directory.folder / kImages);
  check_refusal(directory.train(), 4, "expected a regular file");
  const Data missing;
  fs::remove(missing.folder / "t10k-labels-idx1-ubyte");
  check_refusal(missing.train(), 4, "t10k-labels-idx1-ubyte");
  const Data empty;
  for (const auto& entry : fs::directory_iterator(empty.folder)) fs::remove(entry);
  check_refusal(empty.train(), 4, "got neither");
}

TEST_CASE("refusals: a negative number of threads, whatever the backend") {
  for (const BackendEntry& entry : known_backends()) {
    CAPTURE(entry.name);
    CHECK_THROWS_WITH_AS(make_backend(entry.name, {.threads = -1}),
                         "threads: expected 0 (all) or more, got -1", Error);
  }
}

TEST_CASE("refusals: the number of a GPU, unless the backend has GPUs") {
  for (const char* name : {"reference", "null"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS(make_backend(name, {.device = 1}),
                         fmt::format("device: expected the backend cuda, which takes a GPU by its "
                                     "number, got {}",
                                     name)
                             .c_str(),
                         Error);
  }
  check_refusal(run_keel({"train", "mnist_mlp", "--device", "-1"}), 2, "--device");
  check_refusal(run_keel({"list", "ops", "--device", "0"}), 2, "--device");
}

// Whether a user without rights can run the program at all.
bool nobody_runs() {
  const bool runs = run_keel({"--version"}, {.as_nobody = true}).code == 0;
  if (!runs) MESSAGE("skipped: the program lies where other users cannot reach it");
  return runs;
}

TEST_CASE("refusals: permission") {
  if (!nobody_runs()) return;
  const Data data;
  chmod(data.temp.path().c_str(), 0755);
  chmod(data.folder.c_str(), 0755);
  chmod((data.folder / kImages).c_str(), 0);
  check_refusal(data.train({.as_nobody = true}), 4, kImages + ": expected a readable file");
  chmod((data.folder / kImages).c_str(), 0644);
  // Everything can be read, but the run's folder cannot be made.
  chmod(data.temp.path().c_str(), 0555);
  check_refusal(data.train({.as_nobody = true}), 4, "cannot make this folder");
}

TEST_CASE("refusals: a run's folder that cannot be") {
  const test::TempDir temp;
  write_bytes(temp / "file", "content");
  check_refusal(run_keel(small_train(temp / "file/run", {"train.max_steps=1"})), 4, "file/run");
  check_refusal(run_keel(small_train(temp / "file", {"train.max_steps=1"})), 4, "file");
  check_refusal(run_keel(small_train("/proc/keel/run", {"train.max_steps=1"})), 4, "/proc/keel");
  CHECK(read_bytes(temp / "file") == "content");
}

TEST_CASE("refusals: unknown names and values out of range" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const struct {
    std::vector<std::string> arguments;
    int code;
    const char* part;
  } rows[] = {
      {{"mnist_mpl"}, 2, "task: 'mnist_mpl' is unknown; nearest: 'mnist_mlp'"},
      {{"mnist_mlp", "--norm", "lernorm"}, 2, "nearest: 'layernorm'"},
      {{"mnist_mlp", "--norm", "batchnorm{kep=1}"}, 2, "nearest: 'keep'"},
      {{"mnist_mlp", "--backend", "onednm"}, 2, "nearest: 'onednn'"},
      {{"mnist_mlp", "--recipe", "papre"}, 2, "nearest: 'paper'"},
      {{"mnist_mlp", "--recipe", "none.toml"}, 4, "none.toml"},
      {{"mnist_mlp", "--set", "train.bach=3"}, 2, "nearest: 'train.batch'"},
      {{"mnist_mlp", "--set", "train.batch"}, 2, "expected KEY=VALUE, got 'train.batch'"},
      {{"mnist_mlp", "--set", "train.batch=0"}, 2, "train.batch: expected 1 to 2147483647, got 0"},
      {{"mnist_mlp", "--set", "train.batch=x"}, 2, "train.batch: expected a whole number"},
      {{"mnist_mlp", "--set", "train.lr=-1e-3"},
       2,
       "train.lr: expected in (0, 1000000), got -0.001"},
      {{"mnist_mlp", "--set", "train.lr=1e30"}, 2, "train.lr"},
      {{"mnist_mlp", "--set", "model.hidden=0"}, 2, "model.hidden: expected 1 to 1000000, got 0"},
      {{"mnist_cnn", "--set", "model.architecture=E"}, 2, "expected A, B, C or D, got 'E'"},
      {{"mnist_mlp", "--seed", "one"}, 2, "train.seed: expected a whole number, got 'one'"},
      {{"mnist_mlp", "--seed", "-1"}, 2, "train.seed: expected >= 0, got -1"},
      {{"mnist_mlp", "--set", "train.seed=-1"}, 2, "train.seed: expected >= 0, got -1"},
      {{"mnist_mlp", "--set", "data.seed=-1"}, 2, "data.seed: expected >= 0, got -1"},
      {{"mnist_mlp", "--data", "nowhere"}, 4, "nowhere"},
      {{"mnist_mlp", "--set", "train.batch=1000000"}, 2, "batch"},
  };
  for (const auto& row : rows) {
    std::vector<std::string> arguments{"train", "--quiet", "--out", temp / "run"};
    arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
    check_refusal(run_keel(arguments, {.directory = temp.path()}), row.code, row.part);
    CHECK_FALSE(fs::exists(temp / "run"));
  }
}

TEST_CASE("refusals: a negative seed, whichever command takes it") {
  const test::TempDir temp;
  const char* said = "--seed: expected 0 or more, got -1";
  check_refusal(run_keel({"study", "lemma2", "--seed", "-1"}), 2, said);
  check_refusal(run_keel({"norm", "none", "--in", "a", "--out", "b", "--seed", "-1"}), 2, said);
  const std::string recipe = temp / "mine.toml", part = "train.seed: expected >= 0, got -1";
  write_bytes(recipe, "[train]\nseed = -1\n");
  check_refusal(run_keel({"train", "mnist_mlp", "--recipe", recipe, "--out", temp / "run"}), 2,
                part);
  check_refusal(run_keel({"bench", "step", "mnist_mlp", "--set", "train.seed=-1"}), 2, part);
}

TEST_CASE("refusals: a backend trains, or this build or machine has not got it and says why" *
          doctest::test_suite("slow")) {
  int tried = 0;
  for (const BackendEntry& backend : program_backends()) {
    CAPTURE(backend.name);
    const test::TempDir temp;
    auto arguments = small_train(temp / "run", {"train.max_steps=1"});
    arguments.insert(arguments.end(), {"--backend", backend.name});
    const ProcessResult result = run_keel(arguments);
    CHECK(fs::exists(step_file(temp / "run", 1)) == (result.code == 0));
    ++tried;
    if (result.code == 0) {
      CHECK(backend.missing == "");
      CHECK(result.err == "");
      continue;
    }
    const std::string reason = backend.missing.empty() ? "no GPU can be used: " : backend.missing;
    check_refusal(result, 7, "backend " + backend.name + ": " + reason);
    CHECK((backend.name == "onednn" || backend.name == "cuda"));  // the others are always there
  }
  CHECK(tried == 4);
}

TEST_CASE("refusals: a recipe with a mistake names its file and line") {
  const test::TempDir temp;
  const auto train = [&](const std::string& toml) {
    write_bytes(temp / "mine.toml", toml);
    return run_keel({"train", "mnist_mlp", "--recipe", temp / "mine.toml", "--out", temp / "run"});
  };
  check_refusal(train("[train]\nlr = \n"), 2, "mine.toml:2: ");
  check_refusal(train("[train]\n\nlrr = 1\n"), 2, "mine.toml:3: key 'train.lrr' is unknown");
  check_refusal(train("[train]\nepochs = 'two'\n"), 2, "mine.toml:2: train.epochs");
  check_refusal(train(""), 3, "mine.toml");
}

TEST_CASE("refusals: divergence exits 6, names a node and keeps the checkpoints") {
  const test::TempDir temp;
  REQUIRE(run_keel(small_train(temp / "run", {"train.epochs=1", "train.optimizer=sgd"})).code == 0);
  const std::string before = read_bytes(step_file(temp / "run", 8));
  const ProcessResult result =
      run_keel({"train", "--quiet", "--resume", temp / "run", "--set", "train.lr=9e5", "--set",
                "train.weight_decay=1e37", "--set", "train.epochs=3"});
  check_refusal(result, 6, "first not finite: ");
  CHECK((read_bytes(step_file(temp / "run", 8)) == before));
  CHECK(run_keel({"eval", temp / "run"}).code == 0);
}

TEST_CASE("refusals: a full disk exits 4, and the run goes on later as if nothing had been" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  REQUIRE(run_keel(small_train(temp / "straight", {"train.epochs=2"})).code == 0);
  REQUIRE(run_keel(small_train(temp / "run", {"train.epochs=1"})).code == 0);
  const std::string before = read_bytes(step_file(temp / "run", 8));
  const auto resume = [&](const test::ProcessOptions& options) {
    return run_keel({"train", "--quiet", "--resume", temp / "run", "--set", "train.epochs=2"},
                    options);
  };
  check_refusal(resume({.max_file_bytes = std::ssize(before) / 2}), 4, "safetensors: write: ");
  CHECK((read_bytes(step_file(temp / "run", 8)) == before));
  for (const auto& entry : fs::directory_iterator(temp / "run/checkpoints")) {
    CHECK(entry.path().extension() == ".safetensors");  // no temporary file is left
  }
  CHECK(resume({}).code == 0);
  CHECK((read_bytes(step_file(temp / "run", 16)) == read_bytes(step_file(temp / "straight", 16))));
}

}  // namespace
}  // namespace keel::cli
