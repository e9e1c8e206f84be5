// The convolutional network of Xu et al. 2019 in the three shapes that its text fits.
#include "models/mnist_cnn/model.h"
#include "tests/models/helpers.h"
#include "tests/support/checks.h"
#include "tests/support/graph_runner.h"
#include "tests/support/thoroughness.h"

namespace keel::models {
namespace {

train::Job job_with(const std::string& architecture, const std::string& norm, Settings more = {}) {
  more.insert(more.end(), {"model.architecture=" + architecture, "model.norm=" + norm});
  return small_job(more, "mnist_cnn");
}

Graph graph_of(const std::string& architecture, const std::string& norm) {
  return train::build_step(job_with(architecture, norm));
}

TEST_CASE("mnist_cnn: number of parameters") {
  constexpr std::int64_t kConvolutions = 20 * 25 + 20 + 50 * 20 * 25 + 50;
  constexpr std::int64_t kA = kConvolutions + 800 * 500 + 500 + 500 * 10 + 10;
  constexpr std::int64_t kB = kConvolutions + 800 * 10 + 10;
  static_assert(kA == 431080);
  CHECK(count_parameters(graph_of("A", "none")) == kA);
  CHECK(count_parameters(graph_of("B", "none")) == kB);
  CHECK(count_parameters(graph_of("C", "none")) == kA);
  CHECK(count_parameters(graph_of("A", "layernorm")) == kA + 2 * 500);
  CHECK(count_parameters(graph_of("B", "layernorm")) == kB + 2 * 10);
  CHECK(count_parameters(graph_of("C", "layernorm_simple")) == kA);
  // Layer norm has a gain for every element of an image, batch norm one for a channel.
  CHECK(count_parameters(graph_of("C", "layernorm")) == kA + 2 * (500 + 20 * 24 * 24 + 50 * 8 * 8));
  CHECK(count_parameters(graph_of("C", "batchnorm")) == kA + 2 * (500 + 20 + 50));
}

TEST_CASE("mnist_cnn: weights and biases begin uniform within 1 / sqrt(fan-in)") {
  const auto backend = make_backend("reference");
  Variables variables(*backend, 1);
  variables.declare(graph_of("A", "none"));
  const std::pair<std::string, double> fans[] = {
      {"conv1", 25}, {"conv2", 500}, {"fc1", 800}, {"logits", 500}};
  for (const auto& [layer, fan_in] : fans) {
    for (const char* name : {"/weight", "/bias"}) {
      CAPTURE(layer + name);
      const Tensor value = variables.read(layer + name);
      double largest = 0;
      for (std::int64_t e = 0; e < value.elements(); ++e) {
        largest = std::max(largest, std::abs(value.at(e)));
      }
      CHECK(largest <= 1 / std::sqrt(fan_in) * (1 + 1e-6));
      CHECK(largest > 0.7 / std::sqrt(fan_in));
    }
  }
}

TEST_CASE("mnist_cnn: where the norms are") {
  const auto norms = [](const std::string& architecture) {
    std::set<std::string> found;
    for (const std::string& name :
         names_of(graph_of(architecture, "layernorm"), NodeKind::kParameter)) {
      if (name.ends_with("/norm/gain")) found.insert(name.substr(0, name.find('/')));
    }
    return found;
  };
  using Names = std::set<std::string>;
  CHECK(norms("A") == Names{"fc1"});
  CHECK(norms("B") == Names{"logits"});
  CHECK(norms("C") == Names{"conv1", "conv2", "fc1"});
  CHECK(norms("D") == Names{"conv1", "conv2"});
}

TEST_CASE("mnist_cnn: every parameter has a gradient but a bias that batch norm takes away") {
  const struct {
    const char *architecture, *norm;
    std::set<std::string> idle;
  } rows[] = {{"A", "none", {}},
              {"A", "layernorm", {}},
              {"B", "layernorm", {}},
              {"C", "layernorm_simple", {}},
              {"C", "weightnorm", {}},
              {"D", "instancenorm", {"conv1/bias", "conv2/bias"}},
              {"C", "batchnorm", {"conv1/bias", "conv2/bias", "fc1/bias"}}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.architecture));
    CAPTURE(std::string(row.norm));
    CHECK(idle_parameters(job_with(row.architecture, row.norm, {"train.batch=4"})) == row.idle);
  }
}

TEST_CASE("mnist_cnn: learns a few rows by heart" * doctest::test_suite("slow")) {
  // The reference backend and an emulator need a second for what is a blink elsewhere.
  const bool fast = default_backend() != "reference" && !test::is_emulated();
  const std::vector<std::string> norms =
      fast ? std::vector<std::string>{"none",      "layernorm",  "layernorm_simple",
                                      "batchnorm", "weightnorm", "mabn{centralize=true}"}
           : std::vector<std::string>{"layernorm"};
  for (const std::string& norm : norms) {
    CAPTURE(norm);
    CHECK(overfit(job_with("A", norm, {"train.batch=4", "train.lr=3e-3"}), 8) < 0.2);
    if (fast) CHECK(overfit(job_with("C", norm, {"train.batch=16", "train.lr=3e-3"}), 25) < 0.1);
  }
}

TEST_CASE("mnist_cnn: pixels are standardized unless they are not to be") {
  // The least and the largest pixel of an image: background is 0, and ink reaches 255.
  const auto range = [](const std::string& value) {
    const auto job = small_job({"model.standardize=" + value}, "mnist_cnn");
    const auto rows = job.splits().stream(task::Split::kTrain, {});
    const auto pixels = rows->at(0, 0).values[0].as<float>();
    return std::pair(std::ranges::min(pixels), std::ranges::max(pixels));
  };
  // (x / 255 - 0.1307) / 0.3081 at x = 0 and x = 255.
  CHECK(range("true").first == doctest::Approx(-0.1307 / 0.3081));
  CHECK(range("true").second == doctest::Approx((1 - 0.1307) / 0.3081));
  CHECK(range("false").first == 0);
  CHECK(range("false").second == doctest::Approx(1));
}

TEST_CASE("mnist_cnn: refusals") {
  test::check_refused([] { job_with("E", "none"); },
                      "model.architecture:", "expected A, B, C or D, got 'E'");
  test::check_refused([] { job_with("A", "batchnrm"); }, "model.norm:", "nearest: 'batchnorm'");
}

}  // namespace
}  // namespace keel::models
