// From a user's own rows to a network that has learned them, by the commands that the program
// prints.
#include <cstdlib>
#include <sstream>

#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::read_bytes;
using test::write_bytes;

// Four classes, each with words of its own among others.
std::string tickets(int count, const char* form) {
  constexpr const char* kLabels[] = {"bill", "crash", "login", "other"};
  std::string text = std::string(form) == "csv" ? "label,text\n" : "";
  for (int i = 0; i < count; ++i) {
    const std::string label = kLabels[i % 4],
                      said = fmt::format("we see {}{} again with word{} and word{}", label, i % 3,
                                         i % 7, i % 11);
    text += std::string(form) == "csv" ? fmt::format("{},\"{}\"\n", label, said)
            : std::string(form) == "jsonl"
                ? fmt::format("{{\"label\": \"{}\", \"text\": \"{}\"}}\n", label, said)
                : fmt::format("{}\t{}\n", label, said);
  }
  return text;
}

// Settings that make the network small; none of them decides how often it is updated.
const std::vector<std::string> kSmall = {"model.layers=1", "model.width=16", "model.heads=2",
                                         "model.feed_forward=32", "train.lr=1e-2"};

std::vector<std::string> train_on(const fs::path& data, const fs::path& run,
                                  const std::vector<std::string>& more = {}) {
  std::vector<std::string> command{"train", "text_classifier", "--data", data, "--out", run};
  for (const std::string& setting : kSmall) {
    command.push_back("--set");
    command.push_back(setting);
  }
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

TEST_CASE("own data: training finds the form and has enough updates to learn" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  for (const char* form : {"tsv", "csv", "jsonl"}) {
    CAPTURE(form);
    const fs::path data = temp / form;
    fs::create_directory(data);
    write_bytes(data / fmt::format("train.{}", form), tickets(240, form));
    const ProcessResult trained =
        run_keel(train_on(data, temp / (std::string(form) + "-run"), {"--json"}));
    const Json result = json_of(trained);
    CHECK(holds(trained.err, "the data have the form model.task=files"));
    CHECK(holds(trained.err, "small data: train.batch=256 and train.epochs="));
    CHECK(result.at("best_test").at("accuracy") > 90);
    CHECK(result.at("steps") >= 300);
    CHECK(result.at("warnings").empty());
  }
}

TEST_CASE("own data: what the user chooses stays, and a training without a chance says so" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  fs::create_directory(temp / "data");
  write_bytes(temp / "data/train.tsv", tickets(240, "tsv"));
  const ProcessResult trained =
      run_keel(train_on(temp / "data", temp / "run", {"--set", "train.epochs=5"}));
  CHECK(trained.code == 0);
  CHECK_FALSE(holds(trained.err, "small data"));
  CHECK(holds(trained.out, "warning: all 5 updates lie within the warm-up of 100 (train.warmup)"));
  const Json again = json_of(
      run_keel(train_on(temp / "data", temp / "again", {"--set", "train.epochs=5", "--json"})));
  CHECK(again.at("warnings").at(0).get<std::string>().starts_with("all 5 updates"));
}

TEST_CASE("own data: a training that explodes, or ends at chance, says so") {
  const test::TempDir temp;
  const ProcessResult exploded = run_keel(test::small_train(
      temp / "run", {"train.lr=1000", "train.epochs=3", "model.norm=none", "train.seed=1"}));
  CAPTURE(exploded.out);
  REQUIRE(exploded.code == 0);
  CHECK(holds(exploded.out, "warning: the loss exploded: 2."));
  const ProcessResult still = run_keel(test::small_train(
      temp / "still", {"train.lr=1e-20", "train.epochs=1", "train.optimizer=sgd"}));
  CHECK(holds(still.out, " % of the test rows are right, which is no better than chance: '"));
  const ProcessResult learned =
      run_keel(test::small_train(temp / "learned", {"train.epochs=4", "train.lr=1e-2"}));
  CHECK_FALSE(holds(learned.out, "warning:"));
}

// Each class has half of 100 test rows: 59 right ones are within two standard errors of 50.
TEST_CASE("own data: less than two standard errors above chance is no better than it") {
  const test::TempDir temp;
  const fs::path data = temp / "data";
  fs::create_directory(data);
  std::string train, tested;
  for (int i = 0; i < 100; ++i) {
    const int label = i % 2;
    train += fmt::format("c{}\tword{}\n", label, label);
    tested += fmt::format("c{}\tword{}\n", label, i < 59 ? label : 1 - label);
  }
  write_bytes(data / "train.tsv", train);
  write_bytes(data / "valid.tsv", train);
  write_bytes(data / "test.tsv", tested);
  const ProcessResult trained = run_keel(
      test::small_train(temp / "run",
                        {"data.source=" + data.string(), "model.task=files", "train.batch=200",
                         "train.max_steps=20", "train.epochs=20", "train.lr=3e-2"},
                        "text_classifier"));
  CHECK(holds(trained.out, "59.00 % of the test rows are right, which is no better than chance: "));
}

// The folder's name would fall apart in a shell.
TEST_CASE("own data: the command that inspect data prints can be pasted" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const fs::path data = temp / "it's my data; $HOME";
  fs::create_directory(data);
  write_bytes(data / "train.csv", tickets(40, "csv"));
  const Json found = json_of(run_keel({"inspect", "data", data, "--json"}));
  const auto row = std::ranges::find_if(found, [](const Json& of_task) {
    return of_task.at("task") == "text_classifier" && of_task.at("state") == "found";
  });
  REQUIRE(row != found.end());
  const std::string printed = run_keel({"inspect", "data", data}).out, command = row->at("command");
  CHECK(holds(printed, command + "\n"));
  const std::string run = temp / "run";
  CHECK(std::system(
            (command + " --quiet --set train.max_steps=1 --out " + run + " >/dev/null").c_str()) ==
        0);
  CHECK(fs::exists(run + "/result.json"));
  // A file is as good as a folder.
  const Json of_file = json_of(run_keel({"inspect", "data", data / "train.csv", "--json"}));
  CHECK(std::ranges::any_of(of_file, [](const Json& of_task) {
    return of_task.at("task") == "text_classifier" && of_task.at("state") == "found";
  }));
}

TEST_CASE("own data: unknown words are said, and text for a model of pictures is no file" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  write_bytes(temp / "rows.tsv", tickets(40, "tsv"));
  const std::string run = temp / "run";
  REQUIRE(
      run_keel(train_on(temp / "rows.tsv", run, {"--set", "train.max_steps=1", "--quiet"})).code ==
      0);
  const auto says = [&](std::vector<std::string> texts) {
    std::vector<std::string> command{"predict", run};
    for (const std::string& text : texts) command.insert(command.end(), {"--text", text});
    const ProcessResult result = run_keel(command);
    CHECK(result.code == 0);
    return result.err;
  };
  CHECK(says({"we see bill0 again"}) == "");
  CHECK(says({"nothing of that", "kind"}) ==
        "warning: all 4 words are unknown to the model: its answers do not depend on which words "
        "they are\n");
  CHECK(says({"we again", "quite others here"}) ==
        "warning: 3 of 5 words are unknown to the model\n");
  const std::string digits = temp / "digits";
  REQUIRE(run_keel(test::small_train(digits, {"train.max_steps=1"})).code == 0);
  check_refusal(run_keel({"predict", digits, "--text", "hello there"}), 4,
                "no file is called 'hello there'; mnist_mlp classifies pictures");
  const ProcessResult nothing = run_keel({"predict", digits}, {.in = "/dev/null"});
  check_refusal(nothing, 3, "expected pictures, got none");
}

}  // namespace
}  // namespace keel::cli
