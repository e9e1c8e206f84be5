// The networks for small pictures: sizes, norms, data, and what a checkpoint keeps.
#include <algorithm>

#include "frontend/train/evaluator.h"
#include "models/pictures.h"
#include "tests/models/helpers.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

train::Job resnet(Settings more) { return small_job(more, "cifar_resnet20"); }

TEST_CASE("cifar_resnet20: 269,722 parameters and 19 norms at depth 20") {
  const Graph step =
      train::build_step(resnet({"model.depth=20", "model.width=16", "model.norm=batchnorm"}));
  CHECK(count_parameters(step) == 269722);
  int gains = 0, biases = 0;
  for (const std::string& name : names_of(step, NodeKind::kParameter)) {
    gains += name.ends_with("/norm/gain");
    biases += name.ends_with("/bias") && !name.ends_with("/norm/bias");
  }
  CHECK(gains == 19);
  CHECK(biases == 1);  // of the logits
  CHECK(step.shape(step.find_leaf("stage3/block3/conv2/weight")) == Shape{64, 64, 3, 3});
  CHECK(step.shape(step.find_leaf("stage2/block1/conv1/weight")) == Shape{32, 16, 3, 3});
}

TEST_CASE("cifar_resnet20: depth 8 has seven convolutions, with biases where no norm has any") {
  const Graph step = train::build_step(resnet({"model.norm=none"}));
  int weights = 0, biases = 0;
  for (const std::string& name : names_of(step, NodeKind::kParameter)) {
    weights += name.ends_with("/weight");
    biases += name.ends_with("/bias");
  }
  CHECK(weights == 8);
  CHECK(biases == 8);
}

TEST_CASE("cifar_resnet20: weights begin with the deviation sqrt(2 / fan-in)") {
  const auto backend = make_backend("reference");
  Variables variables(*backend, 1);
  variables.declare(train::build_step(resnet({"model.width=16"})));
  const Tensor weight = variables.read("stage3/block1/conv2/weight");
  double squares = 0;
  for (std::int64_t e = 0; e < weight.elements(); ++e) squares += weight.at(e) * weight.at(e);
  // The deviation of a mean of n squares is sqrt(2 / n) of it: 0.7 % here.
  CHECK(squares / double(weight.elements()) == doctest::Approx(2.0 / (9 * 64)).epsilon(0.04));
}

TEST_CASE("cifar_resnet20: every parameter has a gradient") {
  for (const char* norm :
       {"batchnorm", "layernorm", "groupnorm{groups=2}", "powernorm{heads=0}", "none"}) {
    CAPTURE(std::string(norm));
    CHECK(idle_parameters(resnet({fmt::format("model.norm={}", norm), "train.batch=8"})).empty());
  }
}

TEST_CASE(
    "cifar_vgg: VGG-A has 9.75 million parameters, and an eighth of the channels 154 thousand") {
  const auto parameters = [](const char* divisor, const char* norm) {
    return count_parameters(train::build_step(
        small_job({std::string("model.divisor=") + divisor, std::string("model.norm=") + norm},
                  "cifar_vgg")));
  };
  const auto conv = [](std::int64_t in, std::int64_t out) { return 9 * in * out + out; };
  const auto expected = [&](std::int64_t d) {
    const std::int64_t c = 64 / d, u = 512 / d;
    return conv(3, c) + conv(c, 2 * c) + conv(2 * c, 4 * c) + conv(4 * c, 4 * c) + conv(4 * c, u) +
           3 * conv(u, u) + 2 * (u * u + u) + 10 * u + 10;
  };
  CHECK(parameters("1", "none") == expected(1));
  CHECK(parameters("8", "none") == expected(8));
  CHECK(parameters("8", "batchnorm") == expected(8) + 2 * (8 + 16 + 2 * 32 + 4 * 64));
  test::check_refused([&] { parameters("3", "none"); }, "model.divisor: expected a divisor of 64");
}

TEST_CASE("pictures: a tenth is held out, and train.rows are the first") {
  const auto pictures =
      load_pictures({.source = test::small_pictures().string(), .train_rows = 50}, {});
  CHECK(pictures.train.rows() == 50);
  CHECK(pictures.valid.rows() == 8);
  REQUIRE(pictures.skipped.size() == 1);
  CHECK(pictures.skipped[0].rows == 22);
  CHECK(pictures.classes.at(9) == "truck");
  CHECK(pictures.test().rows() == 20);
}

TEST_CASE("pictures: of a folder data.train_rows are drawn from all classes") {
  const test::TempDir temp;
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directory(temp / name);
    for (int i = 0; i < 20; ++i) {
      test::write_bytes(fmt::format("{}/{}/{:02}.pgm", temp.path().string(), name, i),
                        fmt::format("P5 1 1 255\n{}", char('0' + i)));
    }
  }
  const auto pictures =
      load_pictures({.source = temp.path().string(), .train_rows = 16, .seed = 1}, {});
  REQUIRE(pictures.train.rows() == 16);
  const auto labels = pictures.train.label.as<std::int32_t>();
  CHECK(std::ranges::is_sorted(labels));
  CHECK(labels.front() == 0);
  CHECK(labels.back() == 1);
  CHECK(pictures.valid.rows() == 4);
  REQUIRE(pictures.skipped.size() == 1);
  CHECK(pictures.skipped[0].rows == 16);
  CHECK(pictures.skipped[0].why == "not among the 16 drawn with data.seed=1");
  // The held-out rows do not depend on it.
  const auto all = load_pictures({.source = temp.path().string(), .seed = 1}, {});
  CHECK(all.train.rows() == 32);
  CHECK(all.skipped.empty());
  CHECK(std::ranges::equal(all.valid.image.as<std::uint8_t>(),
                           pictures.valid.image.as<std::uint8_t>()));
}

TEST_CASE("pictures: a checkpoint keeps its classes, and data of others are refused") {
  const task::DataRequest cifar{.source = test::small_pictures().string()};
  const std::vector<std::string> own{"cat", "dog"};
  test::check_refused([&] { load_pictures(cifar, own); }, "[pictures] ",
                      "expected data of the classes cat, dog, got airplane", ErrorKind::kBadInput);
  CHECK(classes_of(class_assets(own)) == own);
  const auto refused = [](const task::Assets& assets, const char* what) {
    test::check_refused([&] { classes_of(assets); }, what, "", ErrorKind::kBadInput);
  };
  refused({}, "expected the asset classes, got none");
  refused({{"classes", "a\n\nb\n"}}, "classes: line 2: expected a name, got none");
  refused({{"classes", "a\n"}}, "classes: expected two or more, got 1");
}

TEST_CASE("cifar_resnet20: with batch norm any number of threads gives the same bits" *
          doctest::test_suite("slow")) {
  if (default_backend() != "onednn") {
    MESSAGE("skipped: the onednn backend is not built in");
    return;
  }
  const auto losses = [](int threads) {
    const auto backend = make_backend("onednn", {.threads = threads});
    const auto job = resnet({"model.norm=batchnorm", "model.width=8", "model.augment=true"});
    Variables variables(*backend, 1);
    Program step(*backend, variables, train::build_step(job), {.guard = "grad_norm"});
    test::Rows(job).feed(step, first_rows(job.train().batch));
    step.feed("lr", Tensor::scalar(0.1f));
    std::vector<double> values;
    for (int i = 0; i < 4; ++i) {
      step.feed("step", Tensor::of<std::int32_t>({}, {i}));
      step.run();
      values.push_back(step.scalar("loss"));
    }
    return values;
  };
  const std::vector<double> one = losses(1);
  CHECK(one == losses(2));
  CHECK(one == losses(3));
}

TEST_CASE("cifar_resnet20: refusals") {
  test::check_refused([] { resnet({"model.depth=18"}); }, "model.depth: expected 6 n + 2, got 18");
  test::check_refused([] { resnet({"model.width=3"}); },
                      "model.width: expected an even number, got 3");
  test::check_refused([] { resnet({"model.norm=batchnrm"}); },
                      "model.norm:", "nearest: 'batchnorm'");
}

}  // namespace
}  // namespace keel::models
