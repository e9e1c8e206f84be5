// keel bench
#include "backends/backends.h"
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

std::vector<std::string> accuracy(std::vector<std::string> more) {
  more.insert(more.begin(), {"bench", "accuracy"});
  return more;
}

TEST_CASE("bench: accuracy of one norm, and its worst case alone") {
  const Json all = json_of(run_keel(accuracy({"rmsnorm", "scalenorm", "--json"}))).at("norms");
  REQUIRE(all.size() == 2);
  for (const Json& norm : all) {
    CHECK(norm.at("cases") > 300);
    for (const char* of : {"forward", "dx", "parameters"}) {
      CAPTURE(std::string(of));
      const Json& worst = norm.at(of);
      if (default_backend() == "onednn") CHECK(worst.at("error") > 0);
      CHECK(worst.at("error") <= worst.at("bound"));
      CHECK(worst.at("bound") == (of == std::string("forward") ? 16 : 64));
      const ProcessResult alone =
          run_keel(accuracy({norm.at("norm"), "--case", worst.at("case"), "--json"}));
      CHECK(json_of(alone).at("norms")[0].at(of) == worst);
    }
  }
}

TEST_CASE("bench: accuracy as a table, and exit code 1 over a bound") {
  const std::vector<std::string> arguments{"layernorm", "--case", "rows,groups=4,n=65,mean=1e6"};
  const ProcessResult good = run_keel(accuracy(arguments));
  CHECK(good.code == 0);
  CHECK(holds(good.out, "parameters"));
  CHECK(holds(good.out, "rows,groups=4,n=65,split=1,mean=1000000,eps=1e-05,deviation=1,"));
  CHECK_FALSE(holds(good.out, "FAILED"));
  std::vector<std::string> nothing = arguments;
  nothing.insert(nothing.end(), {"--backend", "null"});
  const ProcessResult bad = run_keel(accuracy(nothing));
  CHECK(bad.code == 1);
  CHECK(holds(bad.out, "FAILED"));
}

TEST_CASE("bench: accuracy, refusals") {
  const auto refused = [](const std::vector<std::string>& arguments, std::string_view part) {
    check_refusal(run_keel(accuracy(arguments)), 2, part);
  };
  refused({"none"}, "'none' does nothing");
  refused({"layernom"}, "nearest: 'layernorm'");
  refused({"powernorm{heads=2}"}, "expected heads=0, got 2");
  refused({"layernorm{axes=2}", "--case", "rows"}, "norm/gain: expected (3, 17), got (17)");
  refused({"detachnorm{axes=2}", "--case", "rows"}, "groups: expected 3, got 1");
  refused({"groupnorm{groups=0}", "--case", "rows"}, "groups: expected 1 or more, got 0");
  refused({"layernorm", "--case", "row,n=3"}, "expected rows, columns, images, instances first");
  refused({"layernorm", "--case", "rows,m=3"}, "got 'm=3'");
  refused({"layernorm", "--case", "rows,n"}, "a whole number");
  refused({"layernorm", "--case", "rows,n=0"}, "expected groups and n of at least 1");
  refused({"layernorm{unbiased=true}", "--case", "rows,n=1"}, "takes none of the cases");
  refused({"batchnorm", "--case", "rows,n=3"}, "expected the layout of batchnorm");
  refused({"layernorm", "--thorough", "--case", "rows"}, "--case");
}

}  // namespace
}  // namespace keel::cli
