// Residual blocks: the shortcut, the sum, and gradients.
#include "frontend/nn/residual.h"

#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

using Names = std::vector<std::string>;

const LayerOptions kNormed{.bias = false, .norm = Norm::parse("batchnorm")};

TEST_CASE("residual: the shortcut takes every second pixel and adds channels of zeros") {
  const ResidualLayer layer{.channels = 6, .stride = 2};
  LayerRun run([&](Net& net, Value x) { return shortcut(net, x, layer); }, {2, 2, 5, 4});
  run.program->run();
  const Tensor x = test::random_normal({2, 2, 5, 4}, 5, 2, 3), y = run.program->fetch("y", true);
  REQUIRE(y.shape() == Shape{2, 6, 3, 2});
  for (std::int64_t n = 0; n < 2; ++n) {
    for (std::int64_t c = 0; c < 6; ++c) {
      for (std::int64_t i = 0; i < 3; ++i) {
        for (std::int64_t j = 0; j < 2; ++j) {
          const bool is_own = c == 2 || c == 3;
          const double expected = is_own ? x.at(((n * 2 + c - 2) * 5 + 2 * i) * 4 + 2 * j) : 0;
          CHECK(y.at(((n * 6 + c) * 3 + i) * 2 + j) == doctest::Approx(expected).epsilon(1e-6));
        }
      }
    }
  }
}

TEST_CASE("residual: the shortcut of equal sizes is the input itself") {
  LayerRun run([](Net& net, Value x) { return shortcut(net, x, {.channels = 3}); }, {2, 3, 4, 4});
  run.program->run();
  test::check_close(run.program->fetch("y", true), test::random_normal({2, 3, 4, 4}, 5, 2, 3), 0);
}

// With weights of zeros the branch is the bias of the second norm.
TEST_CASE("residual: y = relu(branch + shortcut)") {
  LayerRun run(
      [](Net& net, Value x) { return residual_block(net, "block", x, {.channels = 3}, kNormed); },
      {2, 3, 4, 4});
  CHECK(run.parameters == Names{"block/conv1/weight", "block/conv1/norm/gain",
                                "block/conv1/norm/bias", "block/conv2/weight",
                                "block/conv2/norm/gain", "block/conv2/norm/bias"});
  run.variables.write("block/conv2/weight", Tensor(DType::kF64, {3, 3, 3, 3}));
  run.variables.write("block/conv2/norm/bias", test::f64({3}, {0.5, -1, 2}));
  run.program->run();
  const Tensor x = test::random_normal({2, 3, 4, 4}, 5, 2, 3), y = run.program->fetch("y", true);
  for (std::int64_t e = 0; e < y.elements(); ++e) {
    const double bias = std::array{0.5, -1.0, 2.0}[std::size_t(e / 16 % 3)];
    CHECK(y.at(e) == doctest::Approx(std::max(0.0, x.at(e) + bias)).epsilon(1e-6));
  }
}

TEST_CASE("residual: gradients of a block that changes sizes" * doctest::test_suite("slow")) {
  for (const char* norm : {"batchnorm", "layernorm{per_pixel=true}", "none"}) {
    CAPTURE(std::string(norm));
    LayerOptions options{.bias = true, .norm = Norm::parse(norm)};
    options.bias = !options.norm->has_bias();
    LayerRun run(
        [&](Net& net, Value x) {
          return residual_block(net, "block", x, {.channels = 4, .stride = 2}, options);
        },
        {3, 2, 4, 4});
    check_central_differences(run);
  }
}

TEST_CASE("residual: refusals") {
  const auto refused = [](std::int64_t channels) {
    test::check_refused(
        [&] {
          LayerRun([&](Net& net, Value x) { return shortcut(net, x, {.channels = channels}); },
                   {1, 3, 4, 4});
        },
        "[residual] channels: expected 3 or more, by an even number, got");
  };
  refused(2);
  refused(4);
}

TEST_CASE("layernorm{per_pixel}: a row is the channels of one pixel") {
  const auto norm = [](const char* text) {
    return [text](Net& net, Value x) { return Norm::parse(text)(net, "norm", x); };
  };
  LayerRun run(norm("layernorm{per_pixel=true}"), {2, 3, 2, 2});
  CHECK(run.read("norm/gain").shape() == Shape{3});
  run.variables.write("norm/gain", test::f64({3}, {1, 2, 3}));
  run.variables.write("norm/bias", test::f64({3}, {0, 0.5, 1}));
  run.program->run();
  const Tensor x = test::random_normal({2, 3, 2, 2}, 5, 2, 3), y = run.program->fetch("y", true);
  for (std::int64_t n = 0; n < 2; ++n) {
    for (std::int64_t pixel = 0; pixel < 4; ++pixel) {
      const auto at = [&](std::int64_t c) { return (n * 3 + c) * 4 + pixel; };
      const double mean = (x.at(at(0)) + x.at(at(1)) + x.at(at(2))) / 3;
      double variance = 0;
      for (std::int64_t c = 0; c < 3; ++c) variance += std::pow(x.at(at(c)) - mean, 2) / 3;
      for (std::int64_t c = 0; c < 3; ++c) {
        const double xhat = (x.at(at(c)) - mean) / std::sqrt(variance + 1e-5);
        CHECK(y.at(at(c)) == doctest::Approx(xhat * double(c + 1) + 0.5 * double(c)).epsilon(1e-6));
      }
    }
  }
  check_central_differences(run);
  // The option says nothing about inputs that are not images.
  CHECK(LayerRun(norm("layernorm{per_pixel=true}"), {4, 6}).read("norm/gain").shape() == Shape{6});
  test::check_refused([] { Norm::parse("layernorm{per_pixel=true,axes=2}"); },
                      "norm layernorm: option axes: expected 0 with per_pixel, got 2");
}

}  // namespace
}  // namespace keel::nn
