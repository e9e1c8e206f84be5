// keel reproduce
#include <chrono>
#include <csignal>
#include <iterator>
#include <set>
#include <thread>

#include "tests/program/helpers.h"
#include "tests/support/markup_check.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::Process;
using test::read_bytes;

// A table's small part, on a few hundred digits.
std::vector<std::string> reproduce(const fs::path& out, const std::string& table,
                                   const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"reproduce",          table,   "--recipe",  "laptop", "--data",
                                     test::small_digits(), "--out", out.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> two_cells(const fs::path& out, std::vector<std::string> more = {},
                                   const std::string& seeds = "2") {
  more.insert(more.end(), {"--tasks", "mnist", "--norms", "none,adanorm", "--seeds", seeds, "--set",
                           "train.max_steps=3"});
  return reproduce(out, "xu-table4", more);
}

// The log of each training, by folder: it changes when the training is run again.
std::map<std::string, std::string> logs_in(const fs::path& out) {
  std::map<std::string, std::string> logs;
  for (const auto& entry : fs::directory_iterator(out)) {
    if (entry.is_directory())
      logs[entry.path().filename()] = read_bytes(entry.path() / "train.log");
  }
  return logs;
}

TEST_CASE("reproduce: cells are trained once a seed, and the result is written" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const Json json = json_of(run_keel(two_cells(temp / "out", {"--json"})));
  REQUIRE(json.at("cells").size() == 2);
  for (const Json& cell : json.at("cells")) {
    CHECK(cell.at("column") == "mnist");
    CHECK(cell.at("ours").size() == 2);
    CHECK(cell.at("mean") >= 0);
    CHECK(cell.at("mean") <= 100);
    CHECK(cell.at("seconds") > 0);
    CHECK(cell.at("commands").size() == 2);
  }
  CHECK(json.at("cells")[0].at("paper") == "99.14");
  CHECK(json.at("cells")[1].at("norm") == "adanorm");
  CHECK(holds(json.at("cells")[1].at("commands")[0], "--norm 'adanorm{C=2}'"));
  const std::string run = temp / "out/mnist-adanorm-laptop-seed2";
  CHECK(holds(read_bytes(run + "/config.toml"), "norm = 'adanorm{C=2}'"));
  CHECK(holds(read_bytes(run + "/config.toml"), "seed = 2\n"));
  // The paper counts right answers, the task wrong ones.
  const Json result = Json::parse(read_bytes(run + "/result.json"));
  const double error = result.at("best_test").at("error");
  CHECK(json.at("cells")[1].at("ours")[1] == 100 - error);

  const std::string markdown = read_bytes(temp / "out/xu-table4.md");
  CHECK(holds(markdown, "[data here: train-images-idx3-ubyte"));  // a file in the folder of data
  CHECK(holds(markdown, "| none | 99.14 / "));
  CHECK(holds(markdown, " (2) |"));
  CHECK(holds(markdown, "keel train mnist_cnn --recipe laptop --norm none "));
  CHECK(test::well_formed(read_bytes(temp / "out/xu-table4.html")));
  CHECK(std::ranges::count(read_bytes(temp / "out/xu-table4.csv"), '\n') == 3);
}

TEST_CASE("reproduce: what is finished is never run again, several at once give the same" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  REQUIRE(run_keel(two_cells(temp / "out")).code == 0);
  const auto logs = logs_in(temp / "out");
  const std::string table = read_bytes(temp / "out/xu-table4.csv");
  CHECK(logs.size() == 4);
  // Two of three seeds are there, and nothing is trained.
  const Json as_is = json_of(run_keel(two_cells(temp / "out", {"--as-is", "--json"}, "3")));
  CHECK(as_is.at("cells")[0].at("ours").size() == 2);
  CHECK(as_is.at("cells")[0].at("note") == "seed 3: to do");
  CHECK(logs_in(temp / "out") == logs);
  check_refusal(run_keel(two_cells(temp / "nowhere", {"--as-is"})), 4,
                "nowhere: --as-is: expected a folder that keel reproduce has trained in");
  CHECK_FALSE(fs::exists(temp / "nowhere"));
  const ProcessResult again = run_keel(two_cells(temp / "out"));
  CHECK(again.code == 0);
  CHECK(holds(again.err, "4 trainings, 4 of them done before\n"));
  CHECK(logs_in(temp / "out") == logs);
  CHECK(read_bytes(temp / "out/xu-table4.csv") == table);

  REQUIRE(run_keel(two_cells(temp / "other", {"--jobs", "3"})).code == 0);
  for (const auto& [folder, log] : logs) {
    CAPTURE(folder);
    const std::string step = "checkpoints/step-00000003.safetensors";
    CHECK((read_bytes(temp / ("out/" + folder) / step) ==
           read_bytes(temp / ("other/" + folder) / step)));
  }
  check_refusal(run_keel(two_cells(temp / "out", {"--set", "train.lr=0.5"})), 2,
                "holds a run with train.lr = 0.001, here it is 0.5; give another --out");
  // A run from before a setting existed had its default, which is not what the recipe has.
  const fs::path config = temp / "out/mnist-adanorm-laptop-seed2/config.toml";
  const std::string text = read_bytes(config), line = "batch = 32\n";
  REQUIRE(holds(text, line));
  test::write_bytes(config, std::string(text).erase(text.find(line), line.size()));
  check_refusal(run_keel(two_cells(temp / "out")), 2,
                "holds a run with train.batch = 128, here it is 32");
}

TEST_CASE("reproduce: columns of one training share it" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const Json json = json_of(run_keel(
      reproduce(temp / "out", "ba-figure6",
                {"--json", "--norms", "layernorm", "--seeds", "4,7", "--set", "train.epochs=1",
                 "--set", "train.batch=32", "--set", "model.hidden=16"})));
  CHECK(logs_in(temp / "out").size() == 4);  // batch128 and batch4 of two seeds, of four columns
  const std::string nll = read_bytes(temp / "out/batch4-layernorm-laptop-seed7/metrics.jsonl");
  const Json line = Json::parse(nll.substr(0, nll.find('\n')));
  CHECK(line.at("split") == "train");
  CHECK(json.at("cells")[3].at("column") == "nll4");
  CHECK(json.at("cells")[3].at("ours")[1] == line.at("loss"));
  CHECK(json.at("cells")[0].at("epochs") == 1);
}

TEST_CASE("reproduce: a figure is drawn, with a line for each norm" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const std::vector<std::string> more{"--json",         "--seeds",        "1",
                                      "--set",          "train.epochs=2", "--set",
                                      "train.batch=32", "--set",          "model.hidden=16"};
  const Json json = json_of(run_keel(reproduce(temp / "out", "ba-figure6", more)));
  for (const char* column : {"error128", "nll128", "error4", "nll4"}) {
    const std::string path = temp / fmt::format("out/ba-figure6-{}.svg", column);
    CAPTURE(path);
    CHECK(std::ranges::find(json.at("files"), Json(path)) != json.at("files").end());
    REQUIRE(fs::exists(path));
    const std::string chart = read_bytes(path);
    CHECK(holds(chart, ">layernorm<"));
    CHECK(holds(chart, ">batchnorm<"));
    CHECK(holds(chart, ">epoch<"));
  }
  CHECK(holds(read_bytes(temp / "out/ba-figure6-error4.svg"), ">batch 4, test error %<"));
  const std::string page = read_bytes(temp / "out/ba-figure6.html");
  CHECK(test::well_formed(page));
  CHECK(test::texts_of(page, "figure").size() == 4);
  CHECK(holds(read_bytes(temp / "out/ba-figure6.md"), "(ba-figure6-nll128.svg)"));
}

void wait_for(const fs::path& path, Process& process) {
  using namespace std::chrono_literals;
  const auto deadline = std::chrono::steady_clock::now() + 1min;
  while ((!fs::exists(path) || fs::file_size(path) == 0) && !process.has_ended() &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  REQUIRE(fs::exists(path));
}

TEST_CASE("reproduce: interrupted it saves, exits as it should and goes on where it stopped" *
          doctest::test_suite("slow")) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(signal);
    const test::TempDir temp;
    const auto arguments =
        reproduce(temp / "out", "ba-figure6",
                  {"--tasks", "error128", "--norms", "layernorm", "--seeds", "2", "--set",
                   "train.epochs=60", "--set", "train.batch=32", "--set", "model.hidden=16"});
    const fs::path first = temp / "out/batch128-layernorm-laptop-seed1",
                   second = temp / "out/batch128-layernorm-laptop-seed2";
    Process process(arguments);
    wait_for(first / "metrics.jsonl", process);
    check_refusal(run_keel(arguments), 4,
                  fmt::format("process {} (keel reproduce), or a program that it started, works in "
                              "this folder",
                              process.id()));
    wait_for(first / "result.json", process);
    wait_for(second / "metrics.jsonl", process);
    process.signal(signal);
    const ProcessResult stopped = process.wait();
    CAPTURE(stopped.err);
    CHECK(stopped.code == 128 + signal);
    CHECK(stopped.err.ends_with("interrupted; the same command goes on\n"));
    CHECK(holds(stopped.out, "seed 2: interrupted"));
    REQUIRE_FALSE(fs::exists(second / "result.json"));
    const std::string log = read_bytes(first / "train.log");

    const ProcessResult rest = run_keel(arguments);
    CHECK(rest.code == 0);
    CHECK(holds(rest.err, "2 trainings, 1 of them done before\n"));
    CHECK(holds(rest.out, "(2)"));
    CHECK(read_bytes(first / "train.log") == log);
    CHECK(holds(read_bytes(second / "train.log"), "resumed at step "));
  }
}

TEST_CASE("reproduce: one that diverges is shown, stops no other and is not tried again" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const auto arguments = reproduce(temp / "out", "xu-table4",
                                   {"--tasks", "mnist", "--norms", "none,layernorm", "--seeds", "1",
                                    "--set", "train.epochs=1", "--set", "train.optimizer=sgd",
                                    "--set", "train.lr=9e5", "--set", "train.weight_decay=1e37"});
  const ProcessResult result = run_keel(arguments);
  CAPTURE(result.out);
  CHECK(result.code == 1);
  CHECK(holds(result.out, "none       99.14 / diverged\n"));
  CHECK(holds(result.out, "layernorm, mnist: seed 1: diverged: step "));
  CHECK(holds(result.out, "first not finite: "));
  const auto logs = logs_in(temp / "out");
  CHECK(logs.size() == 2);
  CHECK(run_keel(arguments).code == 1);
  CHECK(logs_in(temp / "out") == logs);
}

TEST_CASE("reproduce: a plan is printed and nothing is run" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const ProcessResult plan = run_keel(two_cells(temp / "out", {"--plan"}));
  CHECK(plan.code == 0);
  CHECK(plan.err.empty());
  CHECK(std::ranges::count(plan.out, '\n') == 8);
  CHECK(
      plan.out.starts_with("# none on mnist, seed 1: to do\n"
                           "keel train mnist_cnn --recipe laptop --norm none --data "));
  CHECK_FALSE(fs::exists(temp / "out"));
  const ProcessResult all = run_keel({"reproduce", "xu-table1", "--plan"});
  CHECK(all.code == 0);
  CHECK(holds(all.out, "keel train char_lm --recipe paper "));
  CHECK(holds(all.out, "--recipe paper_sst5 "));
  const ProcessResult laptop = run_keel({"reproduce", "xu-table1", "--plan", "--recipe", "laptop"});
  CHECK(holds(laptop.out, "# en_vi: no such recipe: laptop\n"));
  CHECK(holds(all.out, "--set data.seed=3 --seed 3 --out runs/xu-table1/rt-layernorm-paper-seed3"));
  const Json json = json_of(run_keel({"reproduce", "xu-table1", "--plan", "--json"}));
  CHECK(json.size() > 4);
}

// The options that the help of a subcommand names.
std::set<std::string> options_of(const char* subcommand) {
  const std::string help = run_keel({subcommand, "--help"}).out;
  std::set<std::string> options;
  for (std::size_t at = help.find("\n  --"); at != std::string::npos;
       at = help.find("\n  --", at + 1)) {
    options.insert(help.substr(at + 3, help.find_first_of(" ,\n", at + 3) - at - 3));
  }
  return options;
}

TEST_CASE("reproduce: every option that trainings know is handed on to them") {
  // The options that a training is given for each option of both; other folders and forms of output
  // are its own.
  const std::map<std::string, std::vector<std::string>> given{
      {"--recipe", {"laptop"}}, {"--data", {"builtin"}},      {"--set", {"train.max_steps=3"}},
      {"--threads", {"3"}},     {"--backend", {"reference"}}, {"--tf32", {}},
      {"--device", {"0"}}};
  std::set<std::string> shared;
  std::ranges::set_intersection(options_of("train"), options_of("reproduce"),
                                std::inserter(shared, shared.end()));
  for (const char* own : {"--help", "--jobs", "--json", "--out"}) shared.erase(own);
  std::vector<std::string> words{"reproduce", "xu-table4", "--tasks", "mnist", "--plan"};
  for (const std::string& option : shared) {
    CAPTURE(option);
    REQUIRE(given.contains(option));
    words.push_back(option);
    words.insert(words.end(), given.at(option).begin(), given.at(option).end());
  }
  CHECK(shared.size() == given.size());
  const std::string plan = run_keel(words).out;
  for (const auto& [option, values] : given) {
    if (option == "--data") continue;  // of built-in data a training is told nothing
    const std::string part =
        values.empty() ? fmt::format(" {}", option) : fmt::format(" {} {}", option, values[0]);
    CAPTURE(part);
    int trainings = 0, handed_on = 0;
    for (std::size_t at = 0, end = 0; (end = plan.find('\n', at)) != std::string::npos;
         at = end + 1) {
      const std::string line = plan.substr(at, end - at) + " ";
      if (!line.starts_with("keel train ")) continue;
      ++trainings;
      handed_on += holds(line, part + " ");
    }
    CHECK(trainings > 0);
    CHECK(handed_on == trainings);
  }
}

TEST_CASE("reproduce: a planned command does what the cell does" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  auto arguments = reproduce("out", "xu-table4",
                             {"--tasks", "mnist", "--norms", "none", "--seeds", "1", "--set",
                              "train.max_steps=2", "--json"});
  Json plan = json_of(run_keel(
      [&] {
        auto words = arguments;
        words.push_back("--plan");
        return words;
      }(),
      {.directory = temp.path()}));
  std::vector<std::string> words;  // of a command without quotes
  const std::string command = plan.at(0).at("command");
  for (std::size_t at = command.find(' '); at != std::string::npos;) {
    const std::size_t end = command.find(' ', at + 1);
    words.push_back(command.substr(at + 1, end == std::string::npos ? end : end - at - 1));
    at = end;
  }
  words.back() = (temp / "alone").string();
  REQUIRE(words[words.size() - 2] == "--out");
  REQUIRE(run_keel(words).code == 0);
  REQUIRE(run_keel(arguments, {.directory = temp.path()}).code == 0);
  const std::string step = "checkpoints/step-00000002.safetensors";
  CHECK((read_bytes(temp / "alone" / step) ==
         read_bytes(temp / "out/mnist-none-laptop-seed1" / step)));
}

TEST_CASE("reproduce: a cell without data says which files it expects") {
  const test::TempDir temp;
  const ProcessResult result = run_keel(reproduce(
      temp / "out", "xu-table4",
      {"--tasks", "mnist,rt", "--norms", "none", "--seeds", "1", "--set", "train.max_steps=1"}));
  CAPTURE(result.out);
  CHECK(result.code == 0);
  CHECK(holds(result.out, "76.85 / no data"));
  CHECK(holds(result.out, "none, rt: [text_classifier] "));
  CHECK(holds(read_bytes(temp / "out/xu-table4.md"), "rt-polarity.pos"));
  check_refusal(run_keel({"reproduce", "xu-table4", "--tasks", "rt", "--data", temp / "out"}), 3,
                "nothing to train: rt: no data: [text_classifier] ");
}

TEST_CASE("reproduce: a column of built-in data leaves --data to the others") {
  const test::TempDir temp;
  const auto words = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"reproduce", "shen-table2", "--tasks", "ptb,topic_bigram", "--norms",
                               "powernorm", "--seeds", "1", "--data", test::small_digits()});
    more.insert(more.end(), {"--out", (temp / "out").string()});
    return more;
  };
  const ProcessResult plan = run_keel(words({"--plan"}));
  CHECK(plan.code == 0);
  CHECK(holds(plan.out, "# ptb: no data: "));
  CHECK(holds(plan.out,
              "--recipe laptop --norm 'powernorm{warmup=200}' "
              "--set model.scaling=layerscaling --seed 1 --out"));
  const ProcessResult result = run_keel(words({"--set", "train.max_steps=1"}));
  CAPTURE(result.err);
  CHECK(result.code == 0);
  CHECK(holds(read_bytes(temp / "out/shen-table2.md"),
              "topic-bigram, PPL [data here: topic-bigram]"));
  // Another system has only the paper's numbers.
  CHECK(holds(read_bytes(temp / "out/shen-table2.md"), "| Transformer-XL base | 54.5 / - |"));
  CHECK_FALSE(holds(read_bytes(temp / "out/shen-table2.md"), "Transformer-XL large"));
}

TEST_CASE("reproduce: names that nobody knows") {
  const auto refused = [](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), "reproduce");
    words.push_back("--plan");
    check_refusal(run_keel(words), 2, part);
  };
  refused({"xu-tabel4"}, "table 'xu-tabel4' is unknown; nearest: 'xu-table4'");
  refused({"xu-table4", "--tasks", "minst"}, "--tasks: 'minst' is unknown; nearest: 'mnist'");
  refused({"xu-table4", "--norms", "adnorm"}, "--norms: 'adnorm' is unknown; nearest: 'adanorm'");
  refused({"xu-table4", "--seeds", "0"}, "--seeds: expected 1 to 1000");
  refused({"xu-table4", "--seeds", "1,,2"}, "--seeds: expected a count or seeds");
  refused({"xu-table4", "--seeds", "2,2"}, "got 2 twice");
  refused({"xu-table4", "--recipe", "large"}, "--recipe");
  refused({"xu-table4", "--set", "train.rl=1"}, "train.rl");
}

}  // namespace
}  // namespace keel::cli
