// keel train refuses wrong data of any split before it trains anything.
#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;
using test::read_bytes;
using test::small_train;
using test::write_bytes;

std::string without_last_line(const std::string& text) {
  return text.substr(0, text.rfind('\n', text.size() - 2) + 1);
}
std::string without_last_byte(const std::string& text) { return text.substr(0, text.size() - 1); }
std::string one_line(const std::string& text) { return text.substr(0, text.find('\n') + 1); }
std::string with_a_wrong_line(const std::string& text) { return text + "wrong\n\n"; }

// A folder of SST's labelled lines.
fs::path labelled_lines(const fs::path& folder) {
  fs::create_directory(folder);
  for (const char* part : {"train", "dev", "test"}) {
    std::string lines;
    for (int i = 0; i < 40; ++i) lines += fmt::format("{} word{} word{}\n", i % 5, i % 7, i % 3);
    write_bytes(folder / fmt::format("stsa.fine.{}", part), lines);
  }
  return folder;
}

// All splits of handwriting come out of one file.
TEST_CASE("splits: a test file that is wrong is found before the training" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const struct {
    const char* model;
    fs::path folder;
    const char* file;
    std::string (*spoil)(const std::string&);
    std::vector<std::string> settings;
  } rows[] = {{"mnist_mlp", test::small_digits(), "t10k-images-idx3-ubyte", without_last_byte, {}},
              {"mnist_cnn", test::small_digits(), "t10k-labels-idx1-ubyte", without_last_byte, {}},
              {"cifar_resnet20", test::small_pictures(), "test_batch.bin", without_last_byte, {}},
              {"cifar_vgg", test::small_pictures(), "test_batch.bin", without_last_byte, {}},
              {"draw",
               test::small_digits(),
               "t10k-images-idx3-ubyte",
               without_last_byte,
               {"model.binarize=threshold"}},
              {"text_classifier",
               labelled_lines(temp / "lines"),
               "stsa.fine.test",
               with_a_wrong_line,
               {"model.task=sst5"}},
              {"dependency_parser", test::small_treebank(), "test.conllu", with_a_wrong_line, {}},
              {"translation",
               test::small_pairs(),
               "test_2016_flickr.en",
               without_last_line,
               {"model.corpus=multi30k"}},
              {"order_embeddings", test::small_captions(), "test_caps.txt", without_last_line, {}},
              {"attentive_reader", test::small_questions(), "test.question", with_a_wrong_line, {}},
              {"skip_thoughts", test::small_stories(), "test.txt", one_line, {}}};
  for (const auto& row : rows) {
    CAPTURE(row.model);
    const fs::path data = temp / fmt::format("data of {}", row.model), run = temp / "run";
    fs::copy(row.folder, data);
    auto settings = row.settings;
    settings.insert(settings.end(), {"train.max_steps=1", "data.source=" + data.string()});
    const std::string whole = read_bytes(data / row.file);
    write_bytes(data / row.file, row.spoil(whole));
    const ProcessResult result = run_keel(small_train(run, settings, row.model));
    check_refusal(result, 3);
    CHECK(holds(result.err, data.string()));
    CHECK_FALSE(fs::exists(run));
    fs::remove(data / row.file);
    check_refusal(run_keel(small_train(run, settings, row.model)), 4);
    CHECK_FALSE(fs::exists(run));
    write_bytes(data / row.file, whole);
    CHECK(run_keel(small_train(run, settings, row.model)).code == 0);
    fs::remove_all(run);
  }
}

// A file that is not there is held out of the training rows, so it is no row of the table above.
TEST_CASE("splits: a test file of one's own labels that is wrong is found before the training") {
  const test::TempDir temp;
  const fs::path data = temp / "data", run = temp / "run";
  fs::create_directory(data);
  std::string whole;
  for (int i = 0; i < 40; ++i) whole += fmt::format("{}\tword{}\n", i % 2 ? "NUM" : "ABBR", i % 7);
  for (const char* part : {"train", "valid", "test"}) {
    write_bytes(data / fmt::format("{}.tsv", part), whole);
  }
  const auto train = [&](const std::string& test) {
    write_bytes(data / "test.tsv", test);
    return run_keel(
        small_train(run, {"train.max_steps=1", "model.task=files", "data.source=" + data.string()},
                    "text_classifier"));
  };
  const std::string file = (data / "test.tsv").string();
  check_refusal(train(whole + "wrong\n"), 3,
                file + ": line 41: expected LABEL, a tab and TEXT, got 'wrong'");
  check_refusal(train("NAME\tword1\n" + whole), 3,
                file + ": line 1: expected one of the labels ABBR, NUM, got 'NAME'");
  CHECK_FALSE(fs::exists(run));
  CHECK(train(whole).code == 0);
}

}  // namespace
}  // namespace keel::cli
