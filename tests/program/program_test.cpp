// The program as a whole: help, usage errors, standard streams and surroundings.
#include <fstream>

#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

using test::small_train;

TEST_CASE("program: help of every command is on stdout and succeeds" *
          doctest::test_suite("slow")) {
  const std::vector<std::vector<std::string>> commands{{},
                                                       {"train"},
                                                       {"eval"},
                                                       {"predict"},
                                                       {"list"},
                                                       {"inspect"},
                                                       {"inspect", "graph"},
                                                       {"bench"},
                                                       {"bench", "step"},
                                                       {"bench", "overhead"},
                                                       {"bench", "norms"},
                                                       {"bench", "accuracy"},
                                                       {"norm"},
                                                       {"study"},
                                                       {"report"},
                                                       {"reproduce"},
                                                       {"inspect", "checkpoint"},
                                                       {"inspect", "data"}};
  for (auto command : commands) {
    command.push_back("--help");
    const ProcessResult result = run_keel(command);
    CAPTURE(command.front());
    CHECK(result.code == 0);
    CHECK(result.err.empty());
    CHECK(holds(result.out, "--help"));
    const std::string name =
        fmt::format("keel {}", fmt::join(command.begin(), command.end() - 1, " "));
    const std::size_t examples = result.out.find("examples:\n");
    REQUIRE(examples != std::string::npos);
    // Its own, first with what is asked for by its name.
    CHECK(
        holds(result.out.substr(examples, result.out.find('\n', examples + 10) - examples), name));
  }
}

TEST_CASE("program: the help tells the exit codes, --version the version") {
  CHECK(holds(run_keel({"--help"}).out, "6 diverged"));
  const ProcessResult version = run_keel({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("keel "));
}

TEST_CASE("program: a wrong command line is refused with one line") {
  check_refusal(run_keel({}), 2, "subcommand is required");
  check_refusal(run_keel({"tarin"}), 2);
  check_refusal(run_keel({"train"}), 2, "expected a task");
  check_refusal(run_keel({"train", "mnist_mlp", "--bach", "3"}), 2, "--bach");
  check_refusal(run_keel({"train", "mnist_mlp", "--threads", "many"}), 2, "many");
  check_refusal(run_keel({"train", "mnist_mlp", "--threads", "100000"}), 2, "--threads");
  check_refusal(run_keel({"list", "colours"}), 2, "colours");
  check_refusal(run_keel({"eval"}), 2, "checkpoint");
  check_refusal(run_keel({"bench", "step", "mnist_mlp", "--rounds", "0"}), 2, "--rounds");
  check_refusal(run_keel({"inspect", "graph", "mnist_mlp", "--stage", "later"}), 2, "later");
}

TEST_CASE("program: what there is not gets the nearest that there is") {
  check_refusal(run_keel({"trian", "mnist_mlp"}), 2,
                "keel: error: no subcommand is called 'trian'; nearest: 'train'");
  check_refusal(run_keel({"bench", "stpe"}), 2,
                "keel: error: bench: no subcommand is called 'stpe'; "
                "nearest: 'step'");
  check_refusal(run_keel({"train", "mnist_mlp", "--treads", "3"}), 2,
                "keel: error: train: no option is called '--treads'; nearest: '--threads'");
  check_refusal(run_keel({"inspect", "graph", "mnist_mlp", "--stge=plan"}), 2,
                "nearest: '--stage'");
  check_refusal(
      run_keel({"train", "mnist_mlp", "--epochs", "3"}), 2,
      "keel: error: train: no option is called '--epochs'; it is a key: --set train.epochs=...");
  check_refusal(run_keel({"train", "mnist_mlp", "--max-steps=3"}), 2, "--set train.max_steps=");
  check_refusal(run_keel({"train", "mnist_mlp", "--hidden", "3"}), 2, "--set model.hidden=");
  check_refusal(run_keel({"train", "mnist_cnn", "--hidden", "3"}), 2, "nearest: '--");
  check_refusal(run_keel({"list", "--", "--colour"}), 2, "what: --colour not in {");
}

TEST_CASE("program: an empty value is refused wherever a value is expected" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const std::vector<std::vector<std::string>> commands{{"train", "mnist_mlp", "--data", ""},
                                                       {"train", "mnist_mlp", "--out", ""},
                                                       {"train", "mnist_mlp", "--recipe", ""},
                                                       {"train", "mnist_mlp", "--norm", ""},
                                                       {"train", "--resume", ""},
                                                       {"train", ""},
                                                       {"eval", ""},
                                                       {"eval", "x", "--output", ""},
                                                       {"predict", "x", "--output", ""},
                                                       {"report", ""},
                                                       {"report", "x", "--out", ""},
                                                       {"norm", "none", "--in", "", "--out", "y"},
                                                       {"norm", "none", "--in", "x", "--out", ""},
                                                       {"compare", "mnist_mlp", "--junit", ""},
                                                       {"compare", "mnist_mlp", "--against", ""},
                                                       {"inspect", "data", ""},
                                                       {"study", "lemma2", "--output", ""},
                                                       {"study", "statistics", "--site", ""},
                                                       {"predict", "x", "--vectors", ""},
                                                       {"reproduce", "xu-table4", "--data", ""},
                                                       {"text", "tokenize", "--prefixes", ""},
                                                       {"text", "vocab", "--output", ""},
                                                       {"text", "clean", "a", "b", "", "d"}};
  for (const auto& command : commands) {
    CAPTURE(fmt::format("{}", fmt::join(command, " ")));
    check_refusal(run_keel(command, {.directory = temp.path()}), 2, "expected a value, got ''");
  }
  CHECK(std::filesystem::is_empty(temp.path()));
  // A line may be empty.
  check_refusal(run_keel({"predict", temp / "none", "--text", ""}), 4, "none");
}

TEST_CASE("program: a number that overflows is refused") {
  const test::TempDir temp;  // where a run would be left that is not refused
  const auto refused = [&](const std::vector<std::string>& command, std::string_view part) {
    CAPTURE(fmt::format("{}", fmt::join(command, " ")));
    check_refusal(run_keel(command, {.directory = temp.path()}), 2, part);
  };
  const std::string huge = "99999999999999999999";
  refused({"norm", "none", "--in", "a", "--out", "b", "--seed", huge},
          "--seed: expected a whole number of at most 64 bits, got '" + huge + "'");
  refused({"bench", "step", "mnist_mlp", "--rounds", huge}, "--rounds");
  refused({"train", "mnist_mlp", "--threads", "010x"}, "010x");
  refused({"text", "clean", "a", "b", "c", "d", "--ratio", "1e999"}, "--ratio");
  for (const char* set : {"train.epochs=99999999999999999999", "train.lr=1e999",
                          "train.weight_decay=1e39", "train.accumulate=9223372036854775807"}) {
    refused({"train", "mnist_mlp", "--set", set}, "expected ");
  }
  for (const char* norm :
       {"layernorm{eps=1e39}", "layernorm{eps=1e999}", "groupnorm{groups=99999999999999999999}"}) {
    refused({"train", "mnist_mlp", "--norm", norm}, "expected a ");
  }
  test::write_bytes(temp / "mine.toml", "[train]\nlr = 1e999\n");
  refused({"train", "mnist_mlp", "--recipe", temp / "mine.toml"}, "");
  test::write_bytes(temp / "mine.toml", "[train]\nepochs = " + huge + "\n");
  refused({"train", "mnist_mlp", "--recipe", temp / "mine.toml"}, "mine.toml:2");
  CHECK_FALSE(std::filesystem::exists(temp / "runs"));
}

TEST_CASE("program: an option and --set cannot both give a value") {
  const test::TempDir temp;
  for (const auto& [option, value, set] : std::vector<std::array<std::string, 3>>{
           {"--norm", "none", "model.norm=layernorm"},
           {"--data", "builtin", "data.source=x"},
           {"--seed", "1", "train.seed=2"},
           {"--on-nonfinite", "stop", "train.on_nonfinite=skip"}}) {
    const ProcessResult result =
        run_keel({"train", "mnist_mlp", option, value, "--set", set}, {.directory = temp.path()});
    check_refusal(result, 2,
                  fmt::format("{} and --set {}: expected one of them, got both", option,
                              set.substr(0, set.find('='))));
  }
  const auto train = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "mnist_mlp", "--norm", "none"});
    return run_keel(more, {.directory = temp.path()});
  };
  check_refusal(train({"--set", "train.batch=8", "--set", "model.norm=rmsnorm"}), 2,
                "--norm and --set model.norm: expected one of them, got both");
  check_refusal(train({"--set", "model.normal=1"}), 2, "key 'model.normal' is unknown");
}

TEST_CASE("program: a message shows nothing that a terminal obeys, and no megabyte" *
          doctest::test_suite("slow")) {
  check_refusal(run_keel({"train", "a\x1b[2J\u202e\u0085\xff"}), 2, "'a?[2J?\?\?'");
  const std::string long_name(100000, 'x');
  const ProcessResult result = run_keel({"train", "mnist_mlp", "--set", long_name + "=1"});
  check_refusal(result, 2, "bytes more)...");
  CHECK(result.err.size() < 5000);
  // The system's own message, which is none of keel's.
  const ProcessResult path = run_keel({"inspect", "data", long_name});
  check_refusal(path, 4, "bytes more)...");
  CHECK(path.err.size() < 5000);
}

TEST_CASE("program: a standard output that takes nothing is an error") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"list", "norms"}, {"list", "models", "--json"}, {"--help"}}) {
    CAPTURE(command.front());
    check_refusal(run_keel(command, {.close_out = true}), 4, "standard output");
    check_refusal(run_keel(command, {.out = "/dev/full"}), 4, "standard output");
  }
}

TEST_CASE("program: with a closed standard output no file of a run is written into") {
  const test::TempDir temp;
  const auto arguments = small_train(temp / "run", {"train.epochs=1"});
  check_refusal(run_keel(arguments, {.close_out = true}), 4, "standard output");
  CHECK(std::filesystem::exists(test::step_file(temp / "run", 8)));
  std::ifstream metrics(temp / "run/metrics.jsonl");
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines) CHECK(Json::accept(line));
  CHECK(lines == 2);
}

TEST_CASE("program: no terminal, no home, a C locale and NO_COLOR change nothing") {
  const test::TempDir temp;
  const ProcessResult plain = run_keel({"list", "norms"});
  const ProcessResult bare = run_keel(
      {"list", "norms"},
      {.environment = {{"LANG", "C"}, {"LC_ALL", "C"}, {"HOME", std::nullopt}, {"NO_COLOR", "1"}}});
  CHECK(bare.code == 0);
  CHECK(bare.out == plain.out);
  auto arguments = small_train(temp / "run", {"train.epochs=1"});
  std::erase(arguments, "--quiet");
  const ProcessResult run = run_keel(
      arguments, {.environment = {{"LC_ALL", "C"}, {"HOME", std::nullopt}, {"NO_COLOR", "1"}}});
  CHECK(run.code == 0);
  CHECK(holds(run.err, "epoch 1, step 8: train loss "));
  CHECK_FALSE(holds(run.out + run.err, "\x1b"));
  CHECK_FALSE(holds(run.err, "\r"));
}

TEST_CASE("program: a locale with decimal commas changes no number") {
  const test::TempDir temp;
  const test::ProcessOptions german{.environment = {{"LC_ALL", "de_DE.UTF-8"}}};
  CHECK(run_keel(small_train(temp / "run", {"train.max_steps=1", "train.lr=0.5"}), german).code ==
        0);
  CHECK(holds(test::read_bytes(temp / "run/config.toml"), "lr = 0.5\n"));
}

}  // namespace
}  // namespace keel::cli
