// keel compare
#include <cstdlib>
#include <sstream>

#include "frontend/io/npz.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

using Words = std::vector<std::string>;

// Nothing can be compared in a build of only the reference.
bool has_others() {
  for (const BackendEntry& entry : known_backends()) {
    if (entry.name == "onednn") return entry.missing.empty();
  }
  return false;
}

// On few rows of the digits that are built in.
ProcessResult compare_digits(Words more, const char* model = "mnist_mlp") {
  Words words{"compare", model, "--set", "train.batch=8", "--set", "data.train_rows=200"};
  words.insert(words.end(), more.begin(), more.end());
  return run_keel(words);
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n') + 1;
  return text.substr(text.rfind('\n', end - 1) + 1, end - text.rfind('\n', end - 1) - 1);
}

TEST_CASE("compare program: an honest step agrees, node by node" * doctest::test_suite("slow")) {
  if (!has_others()) return;
  const Json json = json_of(compare_digits({"--json"}));
  CHECK(json.at("agrees") == true);
  const Json& subject = json.at("subjects").at(0);
  CHECK(subject.at("first").is_null());
  CHECK(subject.at("diverged") == 0);
  bool has_loss = false;
  for (const Json& node : subject.at("nodes")) {
    CHECK(node.at("ok") == true);
    CHECK(node.at("of_bound").get<double>() <= 1);
    has_loss = has_loss || node.at("output") == "loss";
  }
  CHECK(has_loss);
  const ProcessResult text = compare_digits({"--mode", "chained", "--node-steps", "2"});
  CHECK(text.code == 0);
  CHECK(text.out.find("drift") != std::string::npos);
  const std::string all = fmt::format("all {} nodes match float64 within rounding error",
                                      json.at("subjects")[0].at("nodes").size());
  CHECK(json.at("verdict").get<std::string>().starts_with(all));
  CHECK(last_line(text.out).starts_with(all));
}

TEST_CASE("compare program: a fault is named, with a command that finds it alone" *
          doctest::test_suite("slow")) {
  if (!has_others()) return;
  const std::string path = "fc1/norm/layer_norm.backward/layer_norm_backward";
  const Words fault{"--inject", "node=" + path + ",kind=sign"};
  const ProcessResult text = compare_digits(fault);
  CHECK(text.code == 1);
  CHECK(text.out.find("first: " + path) != std::string::npos);
  CHECK(text.out.find("--only " + path) != std::string::npos);
  CHECK(
      holds(last_line(text.out), " differs from float64 by more than rounding explains: " + path));
  const ProcessResult alone = compare_digits({fault[0], fault[1], "--only", path, "--json"});
  CHECK(alone.code == 1);
  const Json json = Json::parse(alone.out);
  CHECK(json.at("subjects")[0].at("nodes").size() == 1);
  CHECK(json.at("subjects")[0].at("first") == path);
}

TEST_CASE("compare program: the graph as one backend runs it" * doctest::test_suite("slow")) {
  if (!has_others()) return;
  const std::string path = "max_pool2d.2.planar";  // images channels last are turned after it
  const Words own{"--backends", "onednn", "--as-run"};
  const auto own_graph = [&](Words more) {
    more.insert(more.begin(), own.begin(), own.end());
    return compare_digits(more, "mnist_cnn");
  };
  CHECK(json_of(own_graph({"--json"})).at("agrees") == true);
  const Words fault{"--inject", "node=" + path + ",kind=sign"};
  const ProcessResult found = own_graph(fault);
  CHECK(found.code == 1);
  CHECK(holds(found.out, "first: " + path));
  CHECK(holds(found.out, "--as-run"));
  CHECK(compare_digits(fault, "mnist_cnn").code == 2);  // no such node in the graph of all
}

TEST_CASE("compare program: a fault's tensors, a page and JUnit's XML" *
          doctest::test_suite("slow")) {
  if (!has_others()) return;
  const test::TempDir temp;
  const Words outputs{"--dump",  temp / "dump",      "--html",   temp / "page.html",
                      "--junit", temp / "cases.xml", "--inject", "node=fc1/matmul,kind=scale"};
  CHECK(compare_digits(outputs).code == 1);
  const io::Arrays arrays = io::read_npz(temp / "dump/fc1.matmul.onednn.step0.npz");
  for (const char* name : {"in0", "in1", "expected0", "got0", "bound0"}) {
    CAPTURE(std::string(name));
    CHECK(arrays.contains(name));
  }
  const std::string page = test::read_bytes(temp / "page.html");
  const std::string cases = test::read_bytes(temp / "cases.xml");
  CHECK(page.find("fc1/matmul") != std::string::npos);
  CHECK(cases.find("<failure") != std::string::npos);
  CHECK(cases.find("failures=\"1\"") != std::string::npos);
}

TEST_CASE("compare program: a table shows faults first, then the norm, then the rest") {
  if (!has_others()) return;
  const auto nodes_of = [](const ProcessResult& result) {
    std::vector<std::string> nodes;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      for (const char* word : {"ok ", "DIVERGES ", "insensitive "}) {
        if (line.starts_with(word)) nodes.push_back(line);
      }
    }
    return nodes;
  };
  const Words norm{"--norm", "powernorm", "--set", "model.hidden=16"};
  const auto honest = nodes_of(compare_digits(norm));
  REQUIRE(honest.size() == 12);
  // Two layers, forward and backward: the norms themselves come before what belongs to them.
  for (std::size_t i = 0; i < 4; ++i) CHECK(holds(honest[i], " power_norm"));
  CHECK(holds(honest[4], "/norm/"));
  Words faulty = norm;
  faulty.insert(faulty.end(), {"--inject", "node=fc1/matmul,kind=sign"});
  const ProcessResult fault = compare_digits(faulty);
  const auto wrong = nodes_of(fault);
  REQUIRE(wrong.size() == 12);
  CHECK(wrong[0].starts_with("DIVERGES"));
  CHECK(holds(wrong[0], "fc1/matmul"));
  CHECK(holds(wrong[1], "/norm/"));
  CHECK(holds(fault.out, " more nodes (use --rank to list all)\n"));
  CHECK(holds(fault.out, "error/bound: "));
  // All nodes and columns, nearest to their bounds first.
  Words ranked = norm;
  ranked.push_back("--rank");
  const ProcessResult all = compare_digits(ranked);
  CHECK(nodes_of(all).size() > 12);
  CHECK(holds(all.out, "cosine - 1"));
  CHECK_FALSE(holds(fault.out, "cosine - 1"));
}

TEST_CASE("compare program: norms and ops alone" * doctest::test_suite("slow")) {
  if (!has_others()) return;
  CHECK(run_keel({"compare", "norm", "batchnorm", "--node-steps", "2"}).code == 0);
  CHECK(run_keel({"compare", "op", "matmul", "--rank"}).code == 0);
  CHECK(run_keel({"compare", "op", "layer_norm_backward"}).code == 0);
}

TEST_CASE("compare program: a trace goes from one run to another" * doctest::test_suite("slow")) {
  if (!has_others()) return;
  const test::TempDir temp;
  CHECK(compare_digits({"--record", temp / "trace"}).code == 0);
  const ProcessResult again = compare_digits({"--against", temp / "trace", "--rank"});
  CHECK(again.code == 0);
  CHECK(again.out.find("recorded onednn") != std::string::npos);
  CHECK(compare_digits({"--against", temp / "trace"}, "mnist_cnn").code == 3);
}

TEST_CASE("compare program: a terminal obeys nothing in the name of a file, and JSON is exact") {
  if (!has_others()) return;
  const test::TempDir temp;
  const std::string file = temp / "a\x1b[31m\nb.npz";
  io::Arrays wrong;
  wrong.emplace("softmax", Tensor(DType::kF32, {9, 65}));
  test::write_bytes(file, io::npz_bytes(wrong));
  const Words command{"compare", "op", "softmax", "--against", file};
  const ProcessResult text = run_keel(command);
  CHECK(text.code == 1);
  CHECK(text.out.find("a?[31m?b.npz") != std::string::npos);
  CHECK(text.out.find('\x1b') == std::string::npos);
  Words with_json = command;
  with_json.push_back("--json");
  CHECK(Json::parse(run_keel(with_json).out).dump().find("a\\u001b[31m\\nb.npz") !=
        std::string::npos);
}

TEST_CASE("compare program: training that is followed" * doctest::test_suite("slow")) {
  if (!has_others()) return;
  const test::TempDir temp;
  const ProcessResult text =
      compare_digits({"--steps", "6", "--perturb", "1ulp", "--svg", temp / "race.svg"});
  CHECK(text.code == 0);
  CHECK(holds(text.out, "\n8 twins 1 ulp off beside onednn: losses stay within 0.001\n"));
  CHECK(holds(last_line(text.out), "6 steps are too few for a verdict on rounding"));
  CHECK(test::read_bytes(temp / "race.svg").find("<svg") != std::string::npos);
  const Json json = json_of(compare_digits({"--steps", "6", "--json"}));
  CHECK(json.at("curves")[0].at("losses").size() == 6);
  CHECK(json.at("verdicts").empty());
}

TEST_CASE("compare program: an instruction set that is missing is refused as train refuses it") {
  if (!has_others()) return;
  const test::TempDir temp;
  for (const char* set : {"best", "avx512", "avx2", "scalar"}) {
    CAPTURE(std::string(set));
    const test::ProcessOptions limited{.environment = {{"KEEL_ISA", set}}};
    const auto train = test::small_train(temp / set, {"train.max_steps=1"});
    const ProcessResult trained = run_keel(train, limited);
    const ProcessResult compared =
        run_keel({"compare", "op", "sum", "--case", "small", "--backends", "onednn"}, limited);
    CHECK(compared.code == trained.code);
    if (trained.code == 0) continue;
    check_refusal(trained, 7, "KEEL_ISA: expected best");
    CHECK(compared.err == trained.err);
    const ProcessResult of_all = run_keel({"compare", "op", "sum", "--case", "small"}, limited);
    if (of_all.code != 0) CHECK(of_all.err == trained.err);
    CHECK(holds(trained.err, fmt::format(", got '{}'", set)));
    // The variable takes the names in the message.
    const std::string words = trained.err.substr(trained.err.find("expected ") + 9);
    std::istringstream list(words.substr(0, words.find(',')));
    for (std::string word; list >> word;) {
      if (word == "or") continue;
      CAPTURE(word);
      CHECK(run_keel({"compare", "op", "sum", "--case", "small"},
                     {.environment = {{"KEEL_ISA", word}}})
                .code == 0);
    }
  }
}

TEST_CASE("compare program: what is wrong with a command line") {
  for (const Words& words : std::vector<Words>{
           {"compare"},
           {"compare", "mnist_mlp", "--all-ops"},
           {"compare", "op"},
           {"compare", "op", "matmull"},
           {"compare", "norm", "layernormm"},
           {"compare", "nonsense"},
           {"compare", "op", "sum", "--backends", "reference"},
           {"compare", "op", "sum", "--inject", "node=x"},
           {"compare", "op", "sum", "--only", "nowhere"},
           {"compare", "op", "sum", "--steps", "3"},
           {"compare", "op", "sum", "--as-run"},
           {"compare", "mnist_mlp", "--steps", "3", "--inject", "node=fc1/matmul,kind=sign"},
           {"compare", "mnist_mlp", "--as-run", "--unfused"},
           {"compare", "op", "sum", "--perturb", "1ulp"}}) {
    CAPTURE(fmt::format("{}", fmt::join(words, " ")));
    CHECK(run_keel(words).code == 2);
  }
  CHECK(run_keel({"compare", "op", "sum", "--against", "/nowhere"}).code == 3);
}

// The Python program of docs/compare.md.
std::string documented_script() {
  const std::string page = test::read_bytes("docs/compare.md");
  const std::string fence = "```python\n";
  const std::size_t begin = page.find(fence);
  REQUIRE(begin != std::string::npos);
  return page.substr(begin + fence.size(), page.find("```\n", begin + 3) - begin - fence.size());
}

TEST_CASE("compare program: PyTorch's whole step is held against the reference") {
  if (!has_others()) return;
  const char* named = std::getenv("KEEL_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  if (std::system((python + " -c 'import torch' 2> /dev/null").c_str()) != 0) {
    MESSAGE("skipped: no PyTorch (the variable KEEL_PYTHON names the Python to run)");
    return;
  }
  const test::TempDir temp;
  CHECK(compare_digits({"--unfused", "--export", temp / "start.npz"}).code == 0);
  test::write_bytes(temp / "script.py", documented_script());
  std::filesystem::create_directory(temp / "tools");
  std::filesystem::copy("tools/torch_arrays.py", temp / "tools");
  const std::string command = fmt::format("cd {} && {} script.py", temp.path().string(), python);
  REQUIRE(std::system(command.c_str()) == 0);
  const ProcessResult strict =
      compare_digits({"--unfused", "--against", temp / "torch.npz", "--json", "--strict"});
  CHECK(strict.code == 0);
  const Json json = json_of(strict);
  CHECK(json.at("agrees") == true);
  std::set<std::string> compared;
  for (const Json& node : json.at("subjects")[0].at("nodes")) {
    if (node.at("backend") != "torch.npz") continue;
    CAPTURE(node.dump());
    CHECK(node.at("verdict") == "ok");
    CHECK(node.at("standard") == "any kernel");
    CHECK(!node.at("worst").at("place").get<std::string>().empty());
    compared.insert(node.at("path"));
  }
  CHECK(compared.size() == 19);
  CHECK(compared.contains("cross_entropy.backward/cross_entropy_backward"));
  CHECK(compared.contains("fc1/norm/layer_norm.backward/layer_norm_backward"));
}

}  // namespace
}  // namespace keel::cli
