// Classifiers: labels of a user's own from training to predict, and what eval shows and writes.
#include <cmath>
#include <sstream>

#include "frontend/io/safetensors.h"
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

using test::read_bytes;
using test::write_bytes;

constexpr const char* kNames[] = {"ABBR", "DESC:def", "NUM"};

// 60 rows; the word of a row says which of three classes it is of.
std::string rows_with_labels(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}\tword{} x{}\n", kNames[i % 3], i % 3, i % 5);
  return text;
}

// A classifier of own files, trained until it is right.
struct OwnRun {
  test::TempDir temp;
  std::string folder = temp / "run", data = temp / "data";

  OwnRun() {
    std::filesystem::create_directories(data);
    write_bytes(temp / "data/train.tsv", rows_with_labels(60));
    write_bytes(temp / "data/test.tsv", rows_with_labels(8));
    REQUIRE(
        run_keel(test::small_train(folder,
                                   {"data.source=" + data, "model.task=files", "train.epochs=100",
                                    "train.eval_every=100e", "train.lr=1e-2"},
                                   "text_classifier"))
            .code == 0);
  }
  ProcessResult predict(std::vector<std::string> more) const {
    more.insert(more.begin(), {"predict", folder});
    return run_keel(more);
  }
};

std::vector<std::vector<std::string>> tab_fields(const std::string& text) {
  std::vector<std::vector<std::string>> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto& fields = all.emplace_back();
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, '\t');) fields.push_back(part);
  }
  return all;
}

// Finite weights may overflow: then a row has no answer, and no command makes one up.
TEST_CASE("classes: outputs that are NaN count as wrong, in the table too, and are no answer") {
  const test::TempDir temp;
  const std::string spoilt = temp / "spoilt.safetensors", said = temp / "said.tsv";
  REQUIRE(
      run_keel(test::small_train(temp / "run", {"train.max_steps=1"}, "text_classifier")).code ==
      0);
  io::TensorFile file = io::read_safetensors(temp / "run/checkpoints/best.safetensors");
  for (auto& [name, tensor] : file.tensors) {
    if (tensor.dtype() != DType::kF32 || tensor.shape().rank() != 2) continue;
    const std::span<float> values = tensor.as<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? -3e38f : 3e38f;
  }
  io::write_safetensors(spoilt, file);
  const auto eval = run_keel({"eval", spoilt, "--json", "--output", said});
  CHECK(eval.code == 6);
  CHECK(holds(eval.err, "eval: the loss is "));
  const Json json = Json::parse(eval.out, nullptr, false);
  CHECK(json.at("accuracy") == 0);
  CHECK(json.at("loss").is_null());
  for (const Json& of_class : json.at("confusion").at("classes")) {
    CHECK(of_class.at("rows") > 0);
    CHECK(of_class.at("predicted") == 0);
  }
  for (const Json& row : json.at("confusion").at("counts")) {
    for (const Json& count : row) CHECK(count == 0);
  }
  CHECK(holds(read_bytes(said), "\t\tnan\n"));
  for (const char* form : {"--scores", "--json"}) {
    check_refusal(run_keel({"predict", spoilt, form, "--text", "good"}), 6,
                  "the network's outputs are not finite: there is no answer");
  }
}

TEST_CASE("own labels: predict answers with names, and with probabilities" *
          doctest::test_suite("slow")) {
  const OwnRun run;
  const std::vector<std::string> asked{"--text", "word2 x2", "--text", "word1 x1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), asked.begin(), asked.end());
    return run.predict(more);
  };
  CHECK(with({}).out == "NUM\nDESC:def\n");
  CHECK(json_of(with({"--json"})) == Json{"NUM", "DESC:def"});
  const auto scored = tab_fields(with({"--scores"}).out);
  REQUIRE(scored.size() == 2);
  CHECK(scored[0][1] == "NUM");
  CHECK(std::stod(scored[0][0]) > 0.5);
  const Json ranked = json_of(with({"--n-best", "5", "--json"}));
  for (const Json& of_line : ranked) {
    REQUIRE(of_line.size() == 3);
    double sum = 0, last = 1;
    for (const Json& answer : of_line) {
      const double p = answer.at("score");
      CHECK(std::log(p) == doctest::Approx(answer.at("log_probability").get<double>()));
      CHECK(p <= last);
      sum += last = p;
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-9));
  }
  CHECK(json_of(with({"--n-best", "2", "--json"}))[1].size() == 2);
  CHECK(fmt::format("{:.6f}", ranked[0][0].at("score").get<double>()) == scored[0][0]);
}

TEST_CASE("own labels: eval --output has a line a row, and the matrix agrees with it" *
          doctest::test_suite("slow")) {
  const OwnRun run;
  const std::string out = run.temp / "out";
  const Json json = json_of(run_keel({"eval", run.folder, "--json", "--output", out}));
  const auto lines = tab_fields(read_bytes(out));
  REQUIRE(lines.size() == 8);
  const Json& confusion = json.at("confusion");
  CHECK(confusion.at("labels") == Json{"ABBR", "DESC:def", "NUM"});
  std::vector counts(3, std::vector<int>(3, 0));
  int right = 0;
  for (std::size_t row = 0; row < lines.size(); ++row) {
    REQUIRE(lines[row].size() == 4);
    CHECK(lines[row][0] == fmt::format("{}", row));
    CHECK(lines[row][1] == kNames[row % 3]);
    const auto predicted = std::ranges::find(kNames, lines[row][2]) - kNames;
    REQUIRE(predicted < 3);
    ++counts[row % 3][std::size_t(predicted)];
    right += lines[row][1] == lines[row][2];
    CHECK(std::stod(lines[row][3]) > 1.0 / 3);
  }
  CHECK(confusion.at("counts") == Json(counts));
  CHECK(json.at("accuracy").get<double>() == doctest::Approx(100.0 * right / 8));
  CHECK(confusion.at("classes")[1].at("rows") == 3);
  const ProcessResult text = run_keel({"eval", run.folder});
  CHECK(text.out.starts_with("test: accuracy "));
  CHECK(holds(text.out, "\ntrue \\ predicted  ABBR  DESC:def  NUM  rows  precision %"));
  CHECK(holds(text.out, "\nmacro F1 "));
  // A label that training did not have.
  write_bytes(run.temp / "data/test.tsv", "NUM\ta\nNAME\ta\n");
  check_refusal(run_keel({"eval", run.folder}), 3,
                "test.tsv: line 2: expected one of the labels ABBR, DESC:def, NUM, got 'NAME'");
}

// The words say ABBR five times, DESC:def once and NUM three times, the labels something else.
TEST_CASE("own labels: which class was taken for which, worked out by hand" *
          doctest::test_suite("slow")) {
  const OwnRun run;
  write_bytes(run.temp / "data/test.tsv",
              "ABBR\tword0\nNUM\tword0 x1\nABBR\tword0 x2\nDESC:def\tword1\nDESC:def\tword2\n"
              "NUM\tword2 x1\nNUM\tword0\nABBR\tword0 x3\nNUM\tword2 x4\n");
  const std::string text = run_keel({"eval", run.folder, "--output", run.temp / "out"}).out;
  CAPTURE(text);
  CHECK(
      text.ends_with("true \\ predicted  ABBR  DESC:def  NUM  rows  precision %  recall %  F1 %\n"
                     "ABBR              3     0         0    3     60.0         100.0     75.0\n"
                     "DESC:def          0     1         1    2     100.0        50.0      66.7\n"
                     "NUM               2     0         2    4     66.7         50.0      57.1\n"
                     "macro F1 66.3 %\n"));
  const Json confusion = json_of(run_keel({"eval", run.folder, "--json"})).at("confusion");
  CHECK(confusion.at("counts") == Json{{3, 0, 0}, {0, 1, 1}, {2, 0, 2}});
  const Json expected[] = {
      {{"label", "ABBR"}, {"rows", 3}, {"predicted", 5}, {"recall", 1.0}, {"f1", 0.75}},
      {{"label", "DESC:def"}, {"rows", 2}, {"predicted", 1}, {"precision", 1.0}, {"recall", 0.5}},
      {{"label", "NUM"}, {"rows", 4}, {"predicted", 3}, {"recall", 0.5}, {"f1", 4.0 / 7}}};
  for (std::size_t i = 0; i < 3; ++i) {
    for (const auto& [name, value] : expected[i].items()) {
      CHECK(confusion.at("classes")[i].at(name) == value);
    }
  }
  CHECK(confusion.at("macro_f1").get<double>() ==
        doctest::Approx((0.75 + 2.0 / 3 + 4.0 / 7) / 3).epsilon(1e-12));
  std::string said;
  for (const auto& line : tab_fields(read_bytes(run.temp / "out"))) {
    said += line[0] + " " + line[1] + " " + line[2] + "\n";
  }
  CHECK(said ==
        "0 ABBR ABBR\n1 NUM ABBR\n2 ABBR ABBR\n3 DESC:def DESC:def\n4 DESC:def NUM\n5 NUM NUM\n"
        "6 NUM ABBR\n7 ABBR ABBR\n8 NUM NUM\n");
}

TEST_CASE("own labels: a checkpoint without its labels is refused" * doctest::test_suite("slow")) {
  const OwnRun run;
  const std::string best = run.folder + "/checkpoints/best.safetensors";
  io::TensorFile file = io::read_safetensors(best);
  REQUIRE(file.metadata.contains("asset.labels"));
  file.metadata["asset.labels"] = "ABBR\n\nNUM\n";
  io::write_safetensors(best, file);
  check_refusal(run.predict({"--text", "a"}), 3, "labels: line 2: expected a label, got none");
  file.metadata.erase("asset.labels");
  io::write_safetensors(best, file);
  check_refusal(run.predict({"--text", "a"}), 3, "expected the asset labels, got none");
}

TEST_CASE("many classes: the pairs that were confused most often stand in for the matrix") {
  const test::TempDir temp;
  std::string text;
  // Class 0 has one row, class 1 two, class 2 three, class 3 one, ...
  for (int i = 0; i < 22; ++i) {
    for (int j = 0; j <= i % 3; ++j) text += fmt::format("class{}\tsame words\n", i);
  }
  write_bytes(temp / "train.tsv", text);
  const std::string folder = temp / "run";
  REQUIRE(run_keel(test::small_train(folder,
                                     {"data.source=" + temp.path().string(), "model.task=files",
                                      "train.max_steps=1"},
                                     "text_classifier"))
              .code == 0);
  const ProcessResult result = run_keel({"eval", folder, "--split", "train"});
  CHECK(holds(result.out, "of 22 classes those that were confused most often:\ntrue "));
  const Json confusion =
      json_of(run_keel({"eval", folder, "--split", "train", "--json"})).at("confusion");
  REQUIRE(confusion.at("counts").size() == 22);
  const Json& labels = confusion.at("labels");
  const auto number = [&](const std::string& label) {
    return std::size_t(std::ranges::find(labels, Json(label)) - labels.begin());
  };
  std::istringstream lines(result.out.substr(result.out.find("\ntrue ") + 1));
  std::string line, truth, predicted;
  int pairs = 0, rows = 0, of = 0;
  for (std::getline(lines, line); lines >> truth >> predicted >> rows >> of; ++pairs) {
    CHECK(confusion.at("counts")[number(truth)][number(predicted)] == rows);
    CHECK(confusion.at("classes")[number(truth)].at("rows") == of);
  }
  CHECK(pairs >= 12);  // all rows are alike and taken for one class; eight are held out
}

TEST_CASE("images: eval --output and the matrix agree with the error" *
          doctest::test_suite("slow")) {
  for (const char* model : {"mnist_mlp", "mnist_cnn"}) {
    CAPTURE(std::string(model));
    const test::TempDir temp;
    test::train_in(temp.path(), test::small_job({"train.max_steps=8"}, model));
    const std::string out = temp / "out";
    const Json json = json_of(run_keel({"eval", temp.path(), "--json", "--output", out}));
    const auto lines = tab_fields(read_bytes(out));
    REQUIRE(lines.size() == 60);
    const std::string labels =
        read_bytes(test::small_digits() / "t10k-labels-idx1-ubyte").substr(8);
    int wrong = 0;
    for (std::size_t row = 0; row < lines.size(); ++row) {
      CHECK(lines[row][1] == fmt::format("{}", int(labels[row])));
      wrong += lines[row][1] != lines[row][2];
    }
    CHECK(json.at("error").get<double>() == doctest::Approx(100.0 * wrong / 60));
    int off = 0;
    for (int i = 0; i < 10; ++i) {
      for (int j = 0; j < 10; ++j) {
        if (i != j) off += json.at("confusion").at("counts")[i][j].get<int>();
      }
    }
    CHECK(off == wrong);
  }
}

}  // namespace
}  // namespace keel::cli
