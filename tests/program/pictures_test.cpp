// keel predict on pictures in files and folders, and keel eval on a user's own pictures.
#include <sstream>

#include "frontend/io/png.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::read_bytes;
using test::write_bytes;

// A grey picture with stripes along one of its sides.
std::string stripes(bool upright, int shift, std::int64_t side = 32) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = 0; y < side; ++y) {
    for (std::int64_t x = 0; x < side; ++x) {
      pixels.push_back(((upright ? x : y) + shift) * 32 / side / 4 % 2 == 0 ? 230 : 20);
    }
  }
  return io::png_of(pixels, side, side);
}

// A network that tells upright stripes from others.
struct StripesRun {
  test::TempDir temp;
  std::string folder = temp / "run", data = temp / "data";

  StripesRun() {
    for (const bool upright : {false, true}) {
      const fs::path of_class = temp / (upright ? "data/up right" : "data/across");
      fs::create_directories(of_class);
      for (int i = 0; i < 20; ++i) {
        write_bytes(of_class / fmt::format("{:02}.png", i), stripes(upright, i));
      }
    }
    REQUIRE(run_keel(test::small_train(folder,
                                       {"data.source=" + data, "model.norm=batchnorm",
                                        "model.augment=false", "train.batch=8", "train.epochs=15",
                                        "train.eval_every=15e", "train.lr=1e-2"},
                                       "cifar_resnet20"))
                .code == 0);
  }
};

TEST_CASE("pictures: predict names the class of files, of folders and of names on lines" *
          doctest::test_suite("slow")) {
  const StripesRun run;
  const std::string up = run.temp / "u.png", across = run.temp / "a.pgm",
                    large = run.temp / "large.png";
  write_bytes(up, stripes(true, 3));
  write_bytes(large, stripes(false, 0, 64));
  std::string pgm = "P5 32 32 255\n";
  for (int i = 0; i < 1024; ++i) pgm += char((i / 32 + 1) / 4 % 2 == 0 ? 230 : 20);
  write_bytes(across, pgm);
  const std::string expected =
      fmt::format("{}\tup right\n{}\tacross\n{}\tacross\n", up, across, large);
  CHECK(run_keel({"predict", run.folder, up, across, large}).out == expected);
  write_bytes(run.temp / "names", fmt::format("{}\n{}\n{}\n", up, across, large));
  CHECK(run_keel({"predict", run.folder}, {.in = run.temp / "names"}).out == expected);
  CHECK(json_of(run_keel({"predict", run.folder, up, "--json"})) ==
        Json{{{"file", up}, {"answer", "up right"}}});
  const Json scored = json_of(run_keel({"predict", run.folder, up, "--n-best", "2", "--json"}));
  REQUIRE(scored[0].at("answers").size() == 2);
  const double p = scored[0].at("answers")[0].at("score");
  CHECK(p + scored[0].at("answers")[1].at("score").get<double>() == doctest::Approx(1));
  CHECK(run_keel({"predict", run.folder, up, "--scores"}).out ==
        fmt::format("{}\t{:.6f}\tup right\n", up, p));
  // A folder stands for all of its pictures, those of its folders too, in order.
  const std::string all = run_keel({"predict", run.folder, run.data}).out;
  CHECK(std::ranges::count(all, '\n') == 40);
  CHECK(all.starts_with(run.data + "/across/00.png\tacross\n"));
  CHECK(all.ends_with("/up right/19.png\tup right\n"));
}

TEST_CASE("pictures: eval of own pictures has their classes" * doctest::test_suite("slow")) {
  const StripesRun run;
  const std::string out = run.temp / "out";
  const ProcessResult result = run_keel({"eval", run.folder, "--output", out});
  CHECK(result.out.starts_with("test: error 0.00 %"));
  CHECK(holds(result.out, "true \\ predicted  across  up right  rows"));
  std::istringstream lines(read_bytes(out));
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    CHECK((holds(line, "\tacross\tacross\t") || holds(line, "\tup right\tup right\t")));
  }
  CHECK(rows == 4);
  // A class that the checkpoint does not know.
  fs::create_directories(fs::path(run.data) / "slanted");
  write_bytes(run.data + "/slanted/1.png", stripes(true, 1));
  check_refusal(run_keel({"eval", run.folder}), 3,
                "expected folders of the classes across, up right, got slanted");
}

TEST_CASE("pictures: predict refuses what is no picture, and files for models of lines" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  test::train_in(temp / "digits", test::small_job({"train.max_steps=1"}, "mnist_mlp"));
  const std::string digits = temp / "digits";
  write_bytes(temp / "x.png", "no picture");
  check_refusal(run_keel({"predict", digits, temp / "x.png"}), 3,
                "x.png: expected a PNG or JPEG file");
  check_refusal(run_keel({"predict", digits, temp / "none.png"}), 4, "none.png");
  for (const char* folder : {"empty", "empty/.cache", "empty/folder.png"}) {
    fs::create_directory(temp / folder);
  }
  for (const char* hidden : {"empty/.x.png", "empty/.cache/x.png"}) {
    write_bytes(temp / hidden, "not read");
  }
  check_refusal(run_keel({"predict", digits, temp / "empty"}), 4,
                "empty: expected pictures (.png, .jpg, .jpeg, .pgm, .ppm) in this folder, got "
                "none; left out: hidden: 2");
  CHECK(run_keel({"predict", digits, temp / "x.png", "--text", "a"}).code == 2);
  test::train_in(temp / "text", test::small_job({"train.max_steps=1"}, "text_classifier"));
  check_refusal(run_keel({"predict", temp / "text", temp / "x.png"}), 2,
                "predict: expected no files, for text_classifier answers lines of text, got");
}

TEST_CASE("pictures: models of MNIST name the digits in files" * doctest::test_suite("slow")) {
  for (const char* model : {"mnist_mlp", "mnist_cnn"}) {
    CAPTURE(std::string(model));
    const test::TempDir temp;
    test::train_in(temp / "run", test::small_job({"train.max_steps=8"}, model));
    const std::string images =
        read_bytes(test::small_digits() / "t10k-images-idx3-ubyte").substr(16);
    std::vector<std::string> command{"predict", temp / "run"};
    for (std::size_t i = 0; i < 12; ++i) {
      const auto* first = reinterpret_cast<const std::uint8_t*>(images.data()) + 784 * i;
      const std::string file = temp / fmt::format("{:02}.png", i);
      write_bytes(file, io::png_of({first, 784}, 28, 28));
      command.push_back(file);
    }
    // The same rows as eval has them.
    REQUIRE(run_keel({"eval", temp / "run", "--output", temp / "out"}).code == 0);
    std::istringstream predicted(run_keel(command).out), evaluated(read_bytes(temp / "out"));
    for (std::size_t i = 0; i < 12; ++i) {
      std::string file, digit, number, truth, said, rest;
      predicted >> file >> digit;
      evaluated >> number >> truth >> said >> rest;
      CHECK(digit == said);
    }
  }
}

}  // namespace
}  // namespace keel::cli
