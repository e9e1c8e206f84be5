// keel train
#include "frontend/io/metrics_log.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::read_bytes;
using test::small_train;
using test::step_file;

TEST_CASE("train: the result as JSON") {
  const test::TempDir temp;
  auto arguments = small_train(temp / "run", {"train.epochs=2", "train.average_last=2"});
  arguments.push_back("--json");
  const ProcessResult result = run_keel(arguments);
  const Json json = json_of(result);
  CHECK(result.err.empty());
  CHECK(json.at("folder") == (temp / "run").string());
  CHECK(holds(json.at("data"), "train-images-idx3-ubyte"));
  CHECK(json.at("steps") == 16);
  CHECK(json.at("epochs") == 2);
  CHECK(json.at("stopped_early") == false);
  CHECK(json.at("train_loss") > 0);
  for (const char* part : {"valid", "test", "best_test", "average_test"}) {
    CAPTURE(std::string(part));
    CHECK(json.at(part).at("loss") > 0);
    CHECK(json.at(part).at("error") <= 100);
  }
  CHECK(json.at("test").at("rows") == 60);
  CHECK(json.at("items_per_second") > 0);
}

TEST_CASE("train: the result for people on stdout, progress on stderr") {
  const test::TempDir temp;
  auto arguments = small_train(temp / "run", {"train.epochs=1"});
  std::erase(arguments, "--quiet");
  const ProcessResult result = run_keel(arguments);
  CHECK(result.code == 0);
  CHECK(result.out.starts_with("test, last weights: error "));
  CHECK(holds(result.out, "test, best weights: error "));
  CHECK(holds(result.out, "loss.svg"));
  CHECK(holds(result.err, "epoch 1, step 8: train loss "));
}

TEST_CASE("train: progress goes on while an evaluation runs") {
  const test::TempDir temp;
  REQUIRE(run_keel(small_train(temp / "run", {"train.epochs=1"})).code == 0);
  // As a run that was killed in its last test: no step is left, so that the evaluation is the first
  // of which something is said.
  REQUIRE(std::filesystem::remove(temp / "run/result.json"));
  const ProcessResult result = run_keel({"train", "--resume", temp / "run"});
  CHECK(result.code == 0);
  CHECK(holds(result.err, "\nepoch 1, step 8: evaluating, batch 1 of 1\n"));
}

TEST_CASE("train: what is measured within an epoch says so") {
  const test::TempDir temp;
  auto arguments = small_train(temp / "run", {"train.max_steps=9", "train.eval_every=3u",
                                              "train.test_every=4u", "train.log_every=1"});
  std::erase(arguments, "--quiet");
  const std::string err = run_keel(arguments).err;
  CAPTURE(err);
  double sum = 0;
  for (const Json& line : io::read_metrics(temp / "run/metrics.jsonl")) {
    if (line.contains("lr") && line.at("step") <= 3) sum += line.at("loss").get<double>();
  }
  CHECK(holds(err, fmt::format("epoch 1, step 3: train loss {:.4f} so far, valid error", sum / 3)));
  CHECK(holds(err, "epoch 1, step 4: test error "));
  CHECK(holds(err, "epoch 1, step 6: train loss "));
  CHECK(holds(err, "epoch 1, step 8: test error "));
  CHECK(holds(err, "epoch 2, step 9: train loss "));
  CHECK_FALSE(holds(err, "epoch 0"));
  CHECK_FALSE(holds(err, "loss 0.0000"));
}

TEST_CASE("train: a run that stops early says why, and which weights are the best") {
  const test::TempDir temp;
  const test::Settings settings{"train.epochs=50", "train.lr=1e-20", "train.patience=2"};
  auto arguments = small_train(temp / "run", settings);
  std::erase(arguments, "--quiet");
  const ProcessResult result = run_keel(arguments);
  const std::string why = "no better valid error in 2 evaluations (train.patience = 2)";
  CHECK(holds(result.err, "stopped early at epoch 3, step 24: " + why + "\n"));
  CHECK(holds(result.out, "\nstopped early: " + why + "\n"));
  CHECK(holds(result.out, "\nbest weights: step 8, valid error "));
  CHECK(holds(result.out, " rows/s without evaluations\n"));
  arguments = small_train(temp / "again", settings);
  arguments.push_back("--json");
  const Json json = json_of(run_keel(arguments));
  CHECK(json.at("stopped_early") == true);
  CHECK(json.at("stopped_because") == why);
}

TEST_CASE("train: a recursion of PowerNorm that is no contraction is warned of, once") {
  const auto said = [](const std::string& norm) {
    const test::TempDir temp;
    const ProcessResult result = run_keel(small_train(
        temp / "run", {"train.max_steps=4", "train.log_every=9", "model.norm=" + norm}));
    CHECK(result.code == 0);
    return result.err;
  };
  // With alpha_b = 0 the contraction is the largest mean of xhat^2, with 1 it is 0.
  const std::string warning = said("powernorm{alpha_b=0}");
  CHECK(warning.starts_with("warning: step 1: "));
  CHECK(holds(warning, "/norm: powernorm.contraction is "));
  CHECK(holds(warning, ", above 1: the recursion of nu is no contraction"));
  CHECK(warning.find("contraction is") == warning.rfind("contraction is"));
  CHECK_FALSE(holds(said("powernorm{alpha_b=1}"), "contraction"));
}

TEST_CASE("train: the folder is called after model and recipe when none is given") {
  const test::TempDir temp;
  auto arguments = small_train("unused", {"train.max_steps=1"});
  arguments.erase(std::ranges::find(arguments, "--out"), std::ranges::find(arguments, "--out") + 2);
  CHECK(run_keel(arguments, {.directory = temp.path()}).code == 0);
  CHECK(fs::exists(step_file(temp / "runs/mnist_mlp-laptop", 1)));
}

TEST_CASE("train: config.toml says all of it, and is a recipe") {
  const test::TempDir temp;
  auto arguments = small_train(temp / "a", {"train.max_steps=2"});
  arguments.insert(arguments.end(), {"--seed", "5", "--norm", "batchnorm"});
  REQUIRE(run_keel(arguments).code == 0);
  const std::string config = read_bytes(temp / "a/config.toml");
  for (const char* part : {"seed = 5", "norm = 'batchnorm'", "hidden = 16",
                           "keel = ", "processor = ", "backend_description = "}) {
    CAPTURE(std::string(part));
    CHECK(holds(config, part));
  }
  CHECK(run_keel({"train", "mnist_mlp", "--quiet", "--recipe", temp / "a/config.toml", "--out",
                  temp / "b"})
            .code == 0);
  CHECK((read_bytes(step_file(temp / "b", 2)) == read_bytes(step_file(temp / "a", 2))));
}

TEST_CASE("train: an empty norm is a mistake") {
  check_refusal(run_keel({"train", "mnist_mlp", "--norm", ""}), 2, "--norm: expected a value");
}

TEST_CASE("train: a folder that holds a run is refused and left alone") {
  const test::TempDir temp;
  const auto arguments = small_train(temp / "run", {"train.epochs=1"});
  REQUIRE(run_keel(arguments).code == 0);
  const std::string checkpoint = read_bytes(step_file(temp / "run", 8)),
                    metrics = read_bytes(temp / "run/metrics.jsonl");
  check_refusal(run_keel(arguments), 2, "this folder holds a run already");
  CHECK((read_bytes(step_file(temp / "run", 8)) == checkpoint));
  CHECK(read_bytes(temp / "run/metrics.jsonl") == metrics);
}

TEST_CASE("train: a run that never reached a checkpoint can be started again") {
  const test::TempDir temp;
  fs::create_directories(temp / "run/checkpoints");
  // It was killed while it wrote the first one, which comes before all else.
  const fs::path half = temp / "run/checkpoints/.step-00000000.safetensors.1.keel-tmp";
  test::write_bytes(half, "half");
  test::write_bytes(temp / "run/lock", "process 1 (keel train)\n");
  REQUIRE(run_keel(small_train(temp / "run", {"train.max_steps=1"})).code == 0);
  CHECK_FALSE(fs::exists(half));
  CHECK_FALSE(fs::exists(temp / "run/lock"));
}

TEST_CASE("train: what a checkpoint decides cannot be given with --resume" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  REQUIRE(run_keel(small_train(temp / "run", {"train.max_steps=1"})).code == 0);
  const std::string folder = temp / "run";
  const auto resume = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "--quiet", "--resume", folder});
    return run_keel(more);
  };
  check_refusal(resume({"--out", "x"}), 2, "--out");
  check_refusal(resume({"--seed", "2"}), 2, "--seed");
  check_refusal(resume({"--norm", "none"}), 2, "--norm");
  check_refusal(resume({"--recipe", "paper"}), 2, "--recipe");
  check_refusal(resume({"mnist_cnn"}), 3,
                "expected a checkpoint of mnist_cnn, got one of mnist_mlp");
  check_refusal(resume({"--set", "train.lr"}), 2, "expected KEY=VALUE");
  // Keys that the rows' order and the optimizer's state depend on cannot change; their present
  // value is accepted.
  const auto held = [&](const std::string& set, const std::string& part) {
    check_refusal(resume({"--set", set}), 2, part);
  };
  held("train.seed=2",
       "--resume --set train.seed: expected 1, with which the run was started, got '2'");
  held("train.batch=16", "train.batch: expected 32");
  held("train.accumulate=2", "train.accumulate: expected 1");
  held("train.optimizer=sgd", "train.optimizer: expected adam");
  held("data.seed=5", "data.seed: expected 1");
  held("data.train_rows=9", "data.train_rows: expected ");
  // The network, also where names and shapes of its weights would be the same.
  held("model.hidden=17", "model.hidden: expected 16, with which the run was started, got '17'");
  held("model.norm=groupnorm{groups=4}", "model.norm: expected layernorm");
  CHECK(resume({"--set", "model.norm=layernorm", "--set", "train.max_steps=1"}).code == 0);
  check_refusal(resume({"--data", "builtin", "--set", "data.source=x"}), 2,
                "--data and --set data.source: expected one of them");
  CHECK(resume({"--set", "train.seed=1", "--set", "train.max_steps=1"}).code == 0);
  check_refusal(run_keel({"train", "--resume", temp / "none"}), 4, "none: no such folder");
  CHECK(resume({"mnist_mlp", "--set", "train.max_steps=3"}).code == 0);
  CHECK(fs::exists(step_file(folder, 3)));
}

}  // namespace
}  // namespace keel::cli
