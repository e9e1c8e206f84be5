// keel bench
#include "tests/frontend/cli/helpers.h"

namespace keel::cli {
namespace {

std::vector<std::string> bench(const std::string& what, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"bench",
                                     what,
                                     "mnist_mlp",
                                     "--set",
                                     "model.hidden=16",
                                     "--rounds",
                                     "5",
                                     "--data",
                                     testing::small_digits()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("bench: a step beside its floor") {
  const Json json = json_of(run_keel(bench("step", {"--json"})));
  CHECK(json.at("model") == "mnist_mlp");
  CHECK(json.at("batch") == 128);
  for (const char* part : {"step", "products", "optimizer", "copy"}) {
    CAPTURE(std::string(part));
    CHECK(json.at(part).at("p10") > 0);
    CHECK(json.at(part).at("p10") <= json.at(part).at("median"));
    CHECK(json.at(part).at("median") <= json.at(part).at("p90"));
  }
  CHECK(json.at("ratio") > 0);
  CHECK(json.at("profile").size() > 10);
  const ProcessResult text = run_keel(bench("step", {"--profile"}));
  CHECK(text.code == 0);
  CHECK(holds(text.out, "step / (products + optimizer) = "));
  CHECK(holds(text.out, "adam_step"));
}

TEST_CASE("bench: overhead") {
  const Json json = json_of(run_keel(bench("overhead", {"--json"})));
  CHECK(json.at("kernels") > 10);
  CHECK(json.at("nanoseconds_per_kernel") > 0);
  CHECK(holds(run_keel(bench("overhead")).out, "ns a kernel"));
}

}  // namespace
}  // namespace keel::cli
