// keel compare --case
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

using Words = std::vector<std::string>;

ProcessResult compare_on_cpu(Words words) {
  words.insert(words.begin(), "compare");
  words.insert(words.end(), {"--backends", "onednn"});
  return run_keel(words);
}

// Whether a subject is said to agree: in its line or, where it is the only one, in the last line.
bool agrees_on(const ProcessResult& result, const std::string& subject) {
  const std::string alone = subject + "\n";
  const bool is_alone = holds(result.out, alone);
  const std::size_t begin = is_alone ? result.out.rfind('\n', result.out.size() - 2) + 1
                                     : result.out.find(subject + ": ");
  if (begin == std::string::npos) return false;
  const std::string line = result.out.substr(begin, result.out.find('\n', begin) - begin);
  return holds(line, " match float64 within rounding error");
}

TEST_CASE("compare case: an op is compared on a small and on a large case, or on one" *
          doctest::test_suite("slow")) {
  if (!has_onednn()) return;
  const ProcessResult both = compare_on_cpu({"op", "softmax"});
  CHECK(both.code == 0);
  CHECK(agrees_on(both, "op softmax, small"));
  CHECK(agrees_on(both, "op softmax, large"));
  const ProcessResult one = compare_on_cpu({"op", "softmax", "--case", "large"});
  CHECK_FALSE(holds(one.out, "op softmax, small"));
  CHECK(agrees_on(one, "op softmax, large"));
  const ProcessResult norm = compare_on_cpu({"norm", "scalenorm", "--case", "hard rows"});
  CHECK(agrees_on(norm, "norm scalenorm, hard rows"));
}

TEST_CASE("compare case: the command for a node alone chooses the case" *
          doctest::test_suite("slow")) {
  if (!has_onednn()) return;
  const Words fault{"op", "softmax", "--inject", "node=softmax.3,kind=sign", "--case", "large"};
  const ProcessResult found = compare_on_cpu(fault);
  CHECK(found.code == 1);
  CHECK(holds(found.out, "keel compare op softmax --case large "));
  CHECK(holds(found.out, "--only softmax.3\n"));
  const Json alone =
      Json::parse(compare_on_cpu({"op", "softmax", "--case", "large", "--inject",
                                  "node=softmax.3,kind=sign", "--only", "softmax.3", "--json"})
                      .out);
  REQUIRE(alone.at("subjects").size() == 1);
  CHECK(alone.at("subjects")[0].at("subject") == "op softmax, large");
  CHECK(alone.at("subjects")[0].at("first") == "softmax.3");
  const ProcessResult norm = compare_on_cpu(
      {"norm", "rmsnorm", "--case", "hard rows", "--inject", "node=norm/rms_norm,kind=sign"});
  CHECK(holds(norm.out, "keel compare norm rmsnorm --case 'hard rows' "));
}

TEST_CASE("compare case: a node that one case alone has is found in it") {
  if (!has_onednn()) return;
  const ProcessResult one = compare_on_cpu({"op", "softmax", "--only", "softmax.3"});
  CHECK(one.code == 0);
  CHECK_FALSE(holds(one.out, "op softmax, small"));
  check_refusal(compare_on_cpu({"op", "softmax", "--only", "nowhere"}), 2, "nowhere");
}

TEST_CASE("compare case: a trace of an op is of its small case, unless another is chosen") {
  if (!has_onednn()) return;
  const test::TempDir temp;
  CHECK(compare_on_cpu({"op", "softmax", "--record", temp / "small"}).code == 0);
  const ProcessResult again = compare_on_cpu({"op", "softmax", "--against", temp / "small"});
  CHECK(again.code == 0);
  CHECK(agrees_on(again, "op softmax, small"));
  CHECK(compare_on_cpu({"op", "softmax", "--against", temp / "small", "--case", "large"}).code ==
        3);
  check_refusal(compare_on_cpu({"norm", "rmsnorm", "--record", temp / "norm"}), 2, "--case");
}

TEST_CASE("compare case: what no layer has is refused") {
  check_refusal(run_keel({"compare", "op", "softmax", "--case", "larg"}), 2, "'large'");
  check_refusal(run_keel({"compare", "norm", "rmsnorm", "--case", "hard row"}), 2, "'hard rows'");
  check_refusal(run_keel({"compare", "mnist_mlp", "--case", "large"}), 2, "--case");
}

}  // namespace
}  // namespace keel::cli
