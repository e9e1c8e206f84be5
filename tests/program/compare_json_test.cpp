// Every key of `keel compare --json`, checked against the arrays of --dump or the request.
#include <cmath>
#include <map>

#include "frontend/io/npz.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

using Words = std::vector<std::string>;

const std::string kNorm = "fc1/norm/layer_norm", kProduct = "fc2/matmul";
const std::string kBackward = kNorm + ".backward/layer_norm_backward";

// Six steps with three nodes at fault: the mean of a norm in two steps, more in the second of them,
// a product in all, and a backward in the last.
Json with_faults(Words more, int code = 1) {
  Words words{"compare", "mnist_mlp",           "--backends",   "onednn", "--set", "train.batch=8",
              "--set",   "data.train_rows=200", "--node-steps", "6",      "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const ProcessResult result = run_keel(words);
  CAPTURE(result.err);
  REQUIRE(result.code == code);
  return Json::parse(result.out);
}
const Words kFaults{"--inject", "node=" + kNorm + ",kind=scale,by=1.5,port=1,step=1",
                    "--inject", "node=" + kNorm + ",kind=scale,by=40,port=1,step=4",
                    "--inject", "node=" + kProduct + ",kind=sign",
                    "--inject", "node=" + kBackward + ",kind=sign,step=5"};

const Json& node_of(const Json& json, const std::string& path) {
  const Json& nodes = json.at("subjects").at(0).at("nodes");
  for (const Json& node : nodes) {
    if (node.at("path") == path && node.at("op") != "update") return node;
  }
  FAIL("no node ", path);
  return nodes;
}

// The measures of a node, from the arrays that were dumped.
struct Measures {
  double absolute = 0, relative = 0, ulps = 0, squares = 0, of_expected = 0, of_got = 0;
  double product = 0, of_bound = 0, expected = 0, got = 0, bound = 0;
  std::int64_t port = 0, element = 0;

  explicit Measures(const io::Arrays& arrays) {
    for (int port = 0; arrays.contains(fmt::format("got{}", port)); ++port) {
      const auto array = [&](const char* name) -> const Tensor& {
        return arrays.at(fmt::format("{}{}", name, port));
      };
      for (std::int64_t e = 0; e < array("got").elements(); ++e) {
        take(port, e, {array("expected").at(e), array("got").at(e), array("bound").at(e)});
      }
    }
  }
  double nmse() const { return squares / of_expected; }
  double cosine() const { return product / std::sqrt(of_expected * of_got); }

 private:
  void take(int at_port, std::int64_t at, std::array<double, 3> v) {
    const double error = std::abs(v[1] - v[0]), size = std::abs(v[0]);
    absolute = std::max(absolute, error);
    if (size > 0) relative = std::max(relative, error / size);
    ulps = std::max(ulps, error / std::ldexp(1.0, std::ilogb(std::max(size, 0x1p-126)) - 23));
    squares += error * error, of_expected += v[0] * v[0], of_got += v[1] * v[1];
    product += v[0] * v[1];
    if (error == 0 || error / v[2] <= of_bound) return;
    of_bound = error / v[2];
    port = at_port, element = at;
    expected = v[0], got = v[1], bound = v[2];
  }
};

void check_near(const Json& value, double expected) {
  CHECK(value.get<double>() == doctest::Approx(expected).epsilon(1e-9));
}

TEST_CASE("compare json: the measures of a node are those of its arrays" *
          doctest::test_suite("slow")) {
  if (!has_onednn()) return;
  const test::TempDir temp;
  Words words = kFaults;
  words.insert(words.end(), {"--dump", temp / "dump"});
  const Json json = with_faults(words), &node = node_of(json, kNorm);
  const io::Arrays arrays = io::read_npz(temp / "dump/fc1.norm.layer_norm.onednn.step4.npz");
  const Measures expected(arrays);
  check_near(node.at("max_absolute"), expected.absolute);
  check_near(node.at("max_relative"), expected.relative);
  check_near(node.at("max_ulps"), expected.ulps);
  check_near(node.at("nmse"), expected.nmse());
  check_near(node.at("cosine"), expected.cosine());
  check_near(node.at("of_bound"), expected.of_bound);
  const Json& worst = node.at("worst");
  CHECK(worst.at("output") == 1);
  CHECK(worst.at("output") == expected.port);
  CHECK(worst.at("element") == expected.element);
  CHECK(worst.at("place") == fmt::format("({})", expected.element));
  check_near(worst.at("expected"), expected.expected);
  check_near(worst.at("got"), expected.got);
  check_near(worst.at("bound"), expected.bound);
  check_near(worst.at("values").at("onednn"), expected.got);
  CHECK(expected.element > 0);
  CHECK(expected.cosine() < 0.999);
}

TEST_CASE("compare json: where and when a node is at fault" * doctest::test_suite("slow")) {
  if (!has_onednn()) return;
  const Json json = with_faults(kFaults), &node = node_of(json, kNorm);
  CHECK(node.at("op") == "layer_norm");
  CHECK(node.at("phase") == "forward");
  CHECK(node.at("backend") == "onednn");
  CHECK(node.at("step") == 4);
  CHECK(node.at("steps") == 6);
  CHECK(node.at("steps_diverged") == 2);
  CHECK(node.at("ok") == false);
  CHECK(node.at("reproduce").get<std::string>().ends_with(" --only " + kNorm));
  CHECK(node_of(json, kBackward).at("phase") == "backward");
  CHECK(node_of(json, kBackward).at("step") == 5);
  CHECK(node_of(json, kProduct).at("steps_diverged") == 6);
  const Json& right = node_of(json, "fc1/matmul");
  CHECK(right.at("ok") == true);
  CHECK(right.at("steps_diverged") == 0);
  CHECK_FALSE(right.contains("reproduce"));
  CHECK_FALSE(right.contains("drift"));
  int losses = 0;
  for (const Json& of : json.at("subjects").at(0).at("nodes")) losses += of.at("output") == "loss";
  CHECK(losses == 1);
}

TEST_CASE("compare json: what was compared, and the verdict" * doctest::test_suite("slow")) {
  if (!has_onednn()) return;
  const Json json = with_faults(kFaults);
  CHECK(json.at("reference") == make_backend("reference")->description());
  REQUIRE(json.at("backends").size() == 1);
  CHECK(json.at("backends").at(0).get<std::string>().starts_with("onednn: "));
  CHECK(json.at("mode") == "isolated");
  CHECK(json.at("agrees") == false);
  REQUIRE(json.at("subjects").size() == 1);
  const Json& subject = json.at("subjects").at(0);
  CHECK(subject.at("subject") == "mnist_mlp");
  CHECK(subject.at("agrees") == false);
  CHECK(subject.at("diverged") == 3);
  CHECK(subject.at("refused") == 0);
  CHECK(subject.at("first") == kProduct);
  CHECK(subject.at("nearest").empty());  // a single backend has no rival
}

TEST_CASE("compare json: a chain has drift beside its own errors" * doctest::test_suite("slow")) {
  if (!has_onednn()) return;
  const Json json =
      with_faults({"--mode", "chained", "--inject", "node=fc1/matmul,kind=scale,by=1.5,step=0"});
  CHECK(json.at("mode") == "chained");
  const Json& behind = node_of(json, kProduct);
  CHECK(behind.at("ok") == true);
  for (const char* key : {"max_absolute", "max_relative", "max_ulps", "nmse"}) {
    CAPTURE(std::string(key));
    CHECK(behind.at("drift").at(key).get<double>() > behind.at(key).get<double>());
  }
  CHECK(behind.at("drift").at("cosine").get<double>() <= 1);
}

// Another program gives one result that is wrong, and one whose input it keeps for itself.
TEST_CASE("compare json: a subject counts its nodes by their verdicts") {
  if (!has_onednn()) return;
  const test::TempDir temp;
  io::Arrays arrays;
  arrays.emplace("softmax", Tensor(DType::kF32, {9, 65}));
  arrays.emplace("sum", Tensor(DType::kF32, Shape{}));
  io::write_npz(temp / "theirs.npz", arrays);
  const ProcessResult result =
      run_keel({"compare", "op", "softmax", "--case", "small", "--unfused", "--backends", "onednn",
                "--against", temp / "theirs.npz", "--json"});
  REQUIRE(result.code == 1);
  const Json subject = Json::parse(result.out).at("subjects").at(0);
  std::map<std::string, int> verdicts;
  for (const Json& node : subject.at("nodes")) ++verdicts[node.at("verdict")];
  CHECK(verdicts["diverges"] == 1);
  CHECK(verdicts["uncompared"] == 1);
  CHECK(subject.at("diverged") == verdicts["diverges"]);
  for (const char* verdict : {"suspect", "uncompared", "insensitive", "refused"}) {
    CAPTURE(verdict);
    CHECK(subject.at(verdict) == verdicts[verdict]);
  }
}

TEST_CASE("compare json: of several answers the nearest is counted") {
  if (!has_onednn()) return;
  const test::TempDir temp;
  const Words record{"compare", "op", "softmax", "--backends", "onednn", "--record", temp / "t"};
  REQUIRE(run_keel(record).code == 0);
  const ProcessResult result =
      run_keel({"compare", "op", "softmax", "--backends", "onednn", "--against", temp / "t",
                "--inject", "node=softmax,kind=scale,by=1.5", "--json"});
  REQUIRE(result.code == 1);
  const Json subject = Json::parse(result.out).at("subjects").at(0);
  const int nodes = int(subject.at("nodes").size()) / 2;
  CHECK(subject.at("nearest").at("recorded onednn") == nodes);
  CHECK(subject.at("nearest").at("onednn") == nodes - 1);
}

}  // namespace
}  // namespace keel::cli
