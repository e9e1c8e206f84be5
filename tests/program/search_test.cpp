// keel train --search
#include <csignal>

#include "frontend/io/metrics_log.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::Process;
using test::read_bytes;
using Words = std::vector<std::string>;

Words search(const fs::path& out, const Words& searches, const Words& more = {},
             const test::Settings& settings = {"train.max_steps=12", "train.eval_every=4u"}) {
  Words words = test::small_train(out, settings);
  std::erase(words, "--quiet");
  for (const std::string& text : searches) words.insert(words.end(), {"--search", text});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Words kRates{"train.lr=0.003,1e-5"};

// The best validation value of a run by its own log.
double best_in(const fs::path& run, const std::string& metric) {
  double best = INFINITY;
  for (const Json& line : io::read_metrics(run / "metrics.jsonl")) {
    if (line.value("split", "") == "valid") best = std::min(best, line.at(metric).get<double>());
  }
  return best;
}

// All that a search leaves and that the time of day does not change.
std::map<std::string, std::string> results_in(const fs::path& out) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(out)) {
    const fs::path path = entry.path();
    const bool counts = path.extension() == ".safetensors" || path.extension() == ".toml";
    if (entry.is_regular_file() && counts) files[fs::relative(path, out)] = read_bytes(path);
  }
  return files;
}

TEST_CASE("search: every setting is trained, and the best on the validation rows is chosen" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const fs::path out = temp / "out";
  const Words grid{"train.lr=0.003,1e-5", "model.norm=none,layernorm{eps=1e-3,bias=false}"};
  const Json json = json_of(run_keel(search(out, grid, {"--by", "loss", "--json"})));
  CHECK(json.at("metric").at("name") == "loss");
  CHECK(json.at("keys") == Json({"train.lr", "model.norm"}));
  REQUIRE(json.at("points").size() == 4);
  double best = INFINITY;
  for (const Json& point : json.at("points")) {
    const fs::path run = point.at("folder").get<std::string>();
    CAPTURE(run.string());
    CHECK(point.at("state") == "finished");
    CHECK(point.at("value") == best_in(run, "loss"));
    CHECK(point.at("step").get<int>() % 4 == 0);
    const std::string config = read_bytes(run / "config.toml");
    CHECK(holds(
        config,
        fmt::format("lr = {}\n", double(point["settings"]["train.lr"] == "1e-5" ? 1e-5 : 0.003))));
    best = std::min(best, point.at("value").get<double>());
  }
  CHECK(json.at("points")[1].at("settings").at("model.norm") == "layernorm{eps=1e-3,bias=false}");
  CHECK(json.at("points")[3].at("settings") ==
        Json({{"train.lr", "1e-5"}, {"model.norm", "layernorm{eps=1e-3,bias=false}"}}));
  const Json& chosen = json.at("chosen");
  CHECK(chosen.at("value") == best);
  CHECK(chosen.at("settings").at("train.lr") == "0.003");
  // The recipe and the command train the same bytes as the search did.
  const fs::path run = chosen.at("folder").get<std::string>();
  const std::string weights = read_bytes(test::step_file(run, 12));
  const Words by_recipe{"train", "mnist_mlp",   "--recipe", out / "chosen.toml",
                        "--out", temp / "again"};
  REQUIRE(run_keel(by_recipe).code == 0);
  CHECK((read_bytes(test::step_file(temp / "again", 12)) == weights));
  CHECK(holds(chosen.at("command"), "keel train mnist_mlp --recipe laptop --norm "));
  CHECK_FALSE(holds(chosen.at("command"), "--out"));
}

TEST_CASE("search: an option of the norm, and the table for people" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const fs::path out = temp / "out";
  const Words grid{"norm.alpha_f=.9,.99", "norm.alpha_b=.9,.95"};
  const ProcessResult result = run_keel(
      search(out, grid, {"--norm", "powernorm{warmup=5}", "--by", "error", "--jobs", "2"}));
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK(holds(result.out, "best error on the validation rows; lower is better\n\nnorm.alpha_f  "));
  CHECK(std::ranges::count(result.out, '\n') == 12);
  CHECK(holds(result.out, "\nchosen: norm.alpha_f=."));
  CHECK(
      holds(result.out, "\nkeel train mnist_mlp --recipe laptop --norm 'powernorm{warmup=5,alpha"));
  CHECK(holds(read_bytes(out / "norm.alpha_f=.9,norm.alpha_b=.95/config.toml"),
              "norm = 'powernorm{warmup=5,alpha_f=.9,alpha_b=.95}'\n"));
  CHECK(holds(result.err, "4 trainings, 0 of them done before\n"));
  // The same again trains nothing and says the same; more values keep what is there.
  const ProcessResult again =
      run_keel(search(out, grid, {"--norm", "powernorm{warmup=5}", "--by", "error"}));
  CHECK(again.out == result.out);
  CHECK(holds(again.err, "4 trainings, 4 of them done before\n"));
  const Words more{"norm.alpha_f=.9,.95,.99", "norm.alpha_b=.9,.95"};
  CHECK(holds(run_keel(search(out, more, {"--norm", "powernorm{warmup=5}"})).err,
              "6 trainings, 4 of them done before\n"));
}

TEST_CASE("search: an option takes the place of the one in the recipe" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  test::write_bytes(temp / "r.toml",
                    "[model]\nnorm = \"batchnorm{keep=0.5,eps=1e-3}\"\n[train]\nmax_steps = 2\n");
  const Words words{"train",    "mnist_mlp",        "--recipe", temp / "r.toml",
                    "--out",    temp / "out",       "--set",    "data.train_rows=256",
                    "--search", "norm.keep=0.7,0.8"};
  CHECK(run_keel(words).code == 0);
  CHECK(holds(read_bytes(temp / "out/norm.keep=0.7/config.toml"),
              "norm = 'batchnorm{eps=1e-3,keep=0.7}'\n"));
}

TEST_CASE("search: interrupted it goes on to the same bytes" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const test::Settings length{"train.epochs=40", "model.hidden=16"};
  const auto words = [&](const fs::path& out) { return search(out, kRates, {}, length); };
  const ProcessResult whole = run_keel(words(temp / "whole"));
  REQUIRE(whole.code == 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    CAPTURE(signal);
    const fs::path out = temp / fmt::format("cut{}", signal);
    const fs::path first = out / "train.lr=0.003", second = out / "train.lr=1e-5";
    Process process(words(out));
    REQUIRE(wait_for_file(second / "metrics.jsonl", process));
    const ProcessResult other = run_keel(words(out));
    check_refusal(other, 4, "(keel train --search), or a program that it started, works in this");
    process.signal(signal);
    const ProcessResult stopped = process.wait();
    CHECK(stopped.code == 128 + signal);
    CHECK(stopped.err.ends_with("interrupted; the same command goes on\n"));
    CHECK(holds(stopped.out, "interrupted\n"));
    CHECK_FALSE(holds(stopped.out, "chosen"));
    CHECK_FALSE(fs::exists(out / "chosen.toml"));
    REQUIRE_FALSE(fs::exists(second / "result.json"));
    const std::string log = read_bytes(first / "train.log");
    const ProcessResult rest = run_keel(words(out));
    CHECK(rest.code == 0);
    CHECK(read_bytes(first / "train.log") == log);
    CHECK(holds(read_bytes(second / "train.log"), "resumed at step "));
    CHECK((results_in(out) == results_in(temp / "whole")));
    const std::size_t table = whole.out.find("\nrun: ");
    CHECK(rest.out.substr(0, table) == whole.out.substr(0, table));
  }
}

TEST_CASE("search: a setting that diverges is the worst, and the search goes on" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const test::Settings steep{"train.max_steps=12", "train.optimizer=sgd",
                             "train.weight_decay=1e37"};
  const Words both{"train.lr=9e5,1e-40"};
  const ProcessResult result = run_keel(search(temp / "one", both, {}, steep));
  CAPTURE(result.out);
  CHECK(result.code == 0);
  CHECK(holds(result.out, "diverged: "));
  CHECK(holds(result.out, "\nchosen: train.lr=1e-40\n"));
  const std::string log = read_bytes(temp / "one/train.lr=9e5/train.log");
  CHECK(run_keel(search(temp / "one", both, {}, steep)).out == result.out);
  CHECK(read_bytes(temp / "one/train.lr=9e5/train.log") == log);
  const ProcessResult none = run_keel(search(temp / "all", {"train.lr=9e5,8e5"}, {}, steep));
  CHECK(none.code == 6);
  CHECK(none.err.ends_with("every setting diverged: none is chosen\n"));
  CHECK_FALSE(fs::exists(temp / "all/chosen.toml"));
}

TEST_CASE("search: a training that fails leaves the choice open" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const ProcessResult result =
      run_keel(search(temp / "out", {"norm.groups=4,5"}, {"--norm", "groupnorm"}));
  CHECK(result.code == 1);
  CHECK(holds(result.out, "failed: "));
  CHECK_FALSE(holds(result.out, "chosen"));
  CHECK_FALSE(fs::exists(temp / "out/chosen.toml"));
}

TEST_CASE("search: what is refused before anything is trained") {
  const test::TempDir temp;
  const struct {
    Words searches, more;
    std::string_view part;
  } rows[] = {
      {{"train.lrr=1,2"},
       {},
       "--search train.lrr=1: key 'train.lrr' is unknown; nearest: 'train.lr'"},
      {{"lr=1,2"}, {}, "key 'lr' is unknown; nearest: 'train.lr'"},
      {{"train.lr"}, {}, "--search: expected KEY=VALUE,VALUE,..., got 'train.lr'"},
      {{"=1,2"}, {}, "--search: expected KEY=VALUE,VALUE,..., got '=1,2'"},
      {{"train.lr="}, {}, "--search train.lr: expected a value, got '' as value 1"},
      {{"train.lr=1,,2"}, {}, "--search train.lr: expected a value, got '' as value 2"},
      {{"train.lr=1,2,"}, {}, "--search train.lr: expected a value, got '' as value 3"},
      {{"train.lr=1,2,1.0"}, {}, "--search train.lr: expected each value once, got 1 and 1.0"},
      {{"train.lr=1,2", "train.lr=3,4"},
       {},
       "--search train.lr: expected each key once, got it twice"},
      {{"train.lr=1"},
       {},
       "--search train.lr: expected several settings, got one; train it by --set"},
      {{"train.lr=1,-2"}, {}, "--search train.lr=-2: train.lr: expected in (0, 1000000), got -2"},
      {{"train.lr=1,x"}, {}, "--search train.lr=x: train.lr: expected a number, got 'x'"},
      {{"train.lr=1,2"},
       {"--set", "train.lr=3"},
       "--search train.lr and --set train.lr: expected one"},
      {{"train.seed=1,2"},
       {},
       "--search train.seed: expected a setting: the best of several seeds"},
      {{"data.seed=1,2"}, {}, "--search data.seed: expected a setting that leaves the validation"},
      {{"model.norm=none,{"}, {}, "--search model.norm: expected a closing '}' in 'none,{'"},
      {{"model.norm=none,a}"}, {}, "--search model.norm: '}' closes nothing in 'none,a}'"},
      {{"model.norm=none,lernorm"}, {}, "nearest: 'layernorm'"},
      {{"model.norm=none,layernorm"},
       {"--norm", "adanorm"},
       "--search model.norm and --norm: expected one"},
      {{"norm.eps=1,2"},
       {"--norm", "layernorm{eps=3}"},
       "--search norm.eps: expected it here or in the norm, got also layernorm{eps=3}"},
      {{"norm.epss=1,2"}, {}, "--search norm.epss=1: "},
      {{"norm.eps=1,2", "model.norm=none,layernorm"}, {}, "--search norm.eps=1 model.norm=none: "},
      {{"train.optimizer=adam,adam_"}, {}, "--search train.optimizer=adam_: "},
      {{"model.norm=layernorm,layernorm{}", "norm.eps=1"}, {}, "are the same recipe"},
      {{"train.lr=1,2"},
       {"--by", "perplexity"},
       "--by: expected a metric of mnist_mlp: error, loss; got 'perplexity'"},
      {{}, {"--by", "error"}, "--by requires --search"},
      {{}, {"--jobs", "2"}, "--jobs requires --search"}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.part));
    check_refusal(run_keel(search(temp / "out", row.searches, row.more)), 2, row.part);
    CHECK_FALSE(fs::exists(temp / "out"));
  }
  check_refusal(run_keel({"train", "--search", "train.lr=1,2"}), 2, "expected a task");
  check_refusal(run_keel({"train", "--search", "train.lr=1,2", "--resume", "x"}), 2,
                "--resume excludes --search");
}

TEST_CASE("search: a folder that holds something else is refused" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const fs::path out = temp / "out";
  const test::Settings short_run{"train.max_steps=1"};
  REQUIRE(run_keel(search(out, kRates, {}, short_run)).code == 0);
  const auto files = results_in(out);
  check_refusal(
      run_keel(search(out, {"train.beta1=0.9,0.8"}, {}, short_run)), 2,
      "holds a search with search = train.lr, here it is train.beta1; give another --out");
  check_refusal(
      run_keel(search(out, {"train.lr=0.003,1e-5", "train.beta1=0.9,0.8"}, {}, short_run)), 2,
      "holds a search with search = train.lr, here it is train.beta1 train.lr;");
  check_refusal(run_keel(search(out, kRates, {}, {"train.max_steps=2"})), 2,
                "holds a search with train.max_steps = 1, here it is 2; give another --out");
  check_refusal(run_keel(search(out, kRates, {"--seed", "2"}, short_run)), 2,
                "holds a search with train.seed = 1, here it is 2; give another --out");
  const fs::path file = out / "search.toml";
  const std::string text = read_bytes(file);
  const std::size_t version = text.find("keel = ");
  REQUIRE(version != std::string::npos);
  test::write_bytes(file, std::string(text).replace(version, 8, "keel = '0"));
  check_refusal(run_keel(search(out, kRates, {}, short_run)), 2, "holds a search with keel = 0");
  test::write_bytes(file, "[model]\n");
  check_refusal(run_keel(search(out, kRates, {}, short_run)), 3,
                "search.toml: expected the recipe of a search");
  test::write_bytes(file, "[model");
  check_refusal(run_keel(search(out, kRates, {}, short_run)), 3, "search.toml:1: ");
  test::write_bytes(file, text);
  CHECK((results_in(out) == files));
  CHECK(run_keel(search(out, kRates, {}, short_run)).code == 0);
  check_refusal(run_keel(search(out / "train.lr=1e-5", kRates, {}, short_run)), 2,
                "this folder holds a run already");
}

TEST_CASE("search: the grid, the last key fastest, and its folders" * doctest::test_suite("slow")) {
  const test::TempDir temp;
  const Words grid{"norm.C=0.3,.5", "train.milestones=[50,75],[10]"};
  const Json json = json_of(run_keel(search(temp / "out", grid, {"--json", "--norm", "adanorm"},
                                            {"train.max_steps=1", "train.schedule=milestones"})));
  Words folders;
  for (const Json& point : json.at("points")) {
    folders.push_back(fs::path(point.at("folder").get<std::string>()).filename());
  }
  CHECK(folders == Words{"norm.C=0.3,train.milestones=[50,75]", "norm.C=0.3,train.milestones=[10]",
                         "norm.C=.5,train.milestones=[50,75]", "norm.C=.5,train.milestones=[10]"});
  CHECK(json.at("metric").at("name") == "error");
}

}  // namespace
}  // namespace keel::cli
