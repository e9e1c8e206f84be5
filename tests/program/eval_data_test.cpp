// The data that keel eval is given: a file is a test set, whole, and a folder needs no other split.
#include <sstream>

#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::read_bytes;
using test::write_bytes;

Json evaluated_on(const std::string& run, const fs::path& data) {
  return json_of(run_keel({"eval", run, "--data", data, "--json"}));
}

struct TestSet {
  const char* model;
  fs::path folder;
  std::vector<std::string> files;  // of its test set; the first of them names it
  std::vector<std::string> settings = {};
};

std::vector<TestSet> test_sets() {
  const std::vector<std::string> digits{"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  return {{"mnist_mlp", test::small_digits(), digits},
          {"mnist_cnn", test::small_digits(), digits},
          {"draw", test::small_digits(), digits, {"model.binarize=threshold"}},
          {"cifar_resnet20", test::small_pictures(), {"test_batch.bin"}},
          {"cifar_vgg", test::small_pictures(), {"test_batch.bin"}},
          {"dependency_parser", test::small_treebank(), {"test.conllu"}},
          {"translation",
           test::small_pairs(),
           {"test_2016_flickr.de", "test_2016_flickr.en"},
           {"model.corpus=multi30k"}},
          {"order_embeddings", test::small_captions(), {"test_caps.txt", "test_ims.safetensors"}},
          {"attentive_reader", test::small_questions(), {"test.question"}},
          {"skip_thoughts", test::small_stories(), {"test.txt"}},
          {"word_lm", test::small_words(), {"ptb.test.txt"}}};
}

TEST_CASE("eval: a folder with a test set alone, or its file, is scored as in the whole folder" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  for (const TestSet& set : test_sets()) {
    CAPTURE(set.model);
    const std::string run = temp / set.model, alone = temp / (std::string(set.model) + " data");
    auto settings = set.settings;
    settings.insert(settings.end(), {"train.max_steps=1", "data.source=" + set.folder.string()});
    REQUIRE(run_keel(test::small_train(run, settings, set.model)).code == 0);
    fs::create_directory(alone);
    for (const std::string& file : set.files)
      fs::copy_file(set.folder / file, fs::path(alone) / file);
    const Json whole = json_of(run_keel({"eval", run, "--json"}));
    for (const fs::path& data : {fs::path(alone), fs::path(alone) / set.files[0]}) {
      CAPTURE(data.string());
      const Json found = evaluated_on(run, data);
      CHECK(found.at("rows") == whole.at("rows"));
      CHECK(found.at("items") == whole.at("items"));
      CHECK(found.at("loss") == doctest::Approx(whole.at("loss").get<double>()).epsilon(1e-9));
      CHECK(holds(found.at("data").get<std::string>(), set.files[0].substr(0, 4)));
    }
  }
}

// "LABEL\tTEXT"; the label of row i is that of i % 3.
std::string labelled_rows(int count) {
  constexpr const char* kLabels[] = {"a", "b", "c"};
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}\tword{} x{}\n", kLabels[i % 3], i % 3, i);
  return text;
}

struct Classified {
  std::int64_t row = 0;
  std::string truth;
};

std::vector<Classified> classified_in(const std::string& file) {
  std::vector<Classified> all;
  std::istringstream lines(read_bytes(file));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    all.push_back({std::stoll(line.substr(0, tab)), line.substr(tab + 1, 1)});
  }
  return all;
}

// A run that held out a tenth of its only file for testing.
struct OneFileRun {
  test::TempDir temp;
  std::string file = temp / "rows.tsv", folder = temp / "run", said = temp / "said.tsv";

  OneFileRun() {
    write_bytes(file, labelled_rows(60));
    REQUIRE(run_keel(test::small_train(
                         folder, {"data.source=" + file, "model.task=files", "train.max_steps=1"},
                         "text_classifier"))
                .code == 0);
  }
};

TEST_CASE("eval: a file is scored whole, and rows have the numbers that they have in it") {
  const OneFileRun run;
  // Without --data the rows that the training held out, with their places in the file.
  CHECK(json_of(run_keel({"eval", run.folder, "--output", run.said, "--json"})).at("rows") == 6);
  const std::vector<Classified> held_out = classified_in(run.said);
  REQUIRE(held_out.size() == 6);
  bool all_first = true;
  for (const Classified& row : held_out) {
    CHECK(row.truth == std::string(1, "abc"[row.row % 3]));
    all_first = all_first && row.row < 6;
  }
  CHECK_FALSE(all_first);
  write_bytes(run.temp / "other.tsv", labelled_rows(25));
  const Json other = json_of(run_keel(
      {"eval", run.folder, "--data", run.temp / "other.tsv", "--output", run.said, "--json"}));
  CHECK(other.at("rows") == 25);
  CHECK(other.at("not_scored").empty());
  const std::vector<Classified> rows = classified_in(run.said);
  REQUIRE(rows.size() == 25);
  for (std::int64_t i = 0; i < 25; ++i) {
    CHECK(rows[std::size_t(i)].row == i);
    CHECK(rows[std::size_t(i)].truth == std::string(1, "abc"[i % 3]));
  }
  const ProcessResult text =
      run_keel({"eval", run.folder, "--set", "data.source=" + (run.temp / "other.tsv").string()});
  CHECK(holds(text.out, " 25 rows\ndata: "));
}

TEST_CASE("eval: the training rows of other data are those that a training would take") {
  const OneFileRun run;
  const fs::path folder = run.temp / "other";
  fs::create_directory(folder);
  write_bytes(folder / "train.tsv", labelled_rows(50));
  for (const auto& [split, rows] : {std::pair{"train", 40}, {"valid", 5}, {"test", 5}}) {
    CAPTURE(split);
    const Json json =
        json_of(run_keel({"eval", run.folder, "--data", folder, "--split", split, "--json"}));
    CHECK(json.at("rows") == rows);
  }
}

TEST_CASE("eval: the file of a training is scored whole, and that is said") {
  const OneFileRun run;
  const ProcessResult whole = run_keel({"eval", run.folder, "--data", run.file, "--json"});
  CHECK(json_of(whole).at("rows") == 60);
  CHECK(holds(whole.err, "rows that the run was trained on as well"));
  check_refusal(run_keel({"eval", run.folder, "--data", run.file, "--statistics", "pass"}), 2,
                "expected a folder with training rows, got the file");
}

TEST_CASE("eval: folders of pictures that are no parts are a test set" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const auto picture = [](int grey) { return "P5\n4 4\n255\n" + std::string(16, char(grey)); };
  const auto write = [&](const fs::path& folder, int count) {
    for (int i = 0; i < count; ++i) {
      const fs::path of_class = folder / (i % 2 ? "light" : "dark");
      fs::create_directories(of_class);
      write_bytes(of_class / fmt::format("{:03}.pgm", i), picture(i % 2 ? 200 : 10));
    }
  };
  write(temp / "own", 40);
  write(temp / "others", 14);
  write(temp / "parts/test", 6);
  const std::string run = temp / "run";
  REQUIRE(run_keel(test::small_train(run,
                                     {"data.source=" + (temp / "own").string(), "train.max_steps=1",
                                      "train.batch=8"},
                                     "cifar_resnet20"))
              .code == 0);
  CHECK(json_of(run_keel({"eval", run, "--json"})).at("rows") == 4);
  CHECK(evaluated_on(run, temp / "own").at("rows") == 4);  // the rows that were held out
  CHECK(evaluated_on(run, temp / "others").at("rows") == 14);
  CHECK(evaluated_on(run, temp / "parts").at("rows") == 6);
}

TEST_CASE("eval: a file of training rows is scored whole by every task that has one" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const struct {
    const char* model;
    fs::path folder;
    const char* file;
    std::vector<std::string> settings;
    std::int64_t rows;
  } sets[] = {
      {"mnist_mlp", test::small_digits(), "train-images-idx3-ubyte", {}, 300},
      {"cifar_resnet20", test::small_pictures(), "data_batch_1.bin", {}, 80},
      {"attentive_reader", test::small_questions(), "training.question", {}, 64},
      {"order_embeddings", test::small_captions(), "train_caps.txt", {}, 200},
  };
  for (const auto& set : sets) {
    CAPTURE(set.model);
    const std::string run = temp / set.model;
    REQUIRE(run_keel(test::small_train(run, {"train.max_steps=1"}, set.model)).code == 0);
    CHECK(evaluated_on(run, set.folder / set.file).at("rows") == set.rows);
  }
}

}  // namespace
}  // namespace keel::cli
