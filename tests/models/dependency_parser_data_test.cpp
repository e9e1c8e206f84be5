// The parser's data: which files are read, how they are shared out, and what a user gives.
#include <cstdlib>
#include <filesystem>

#include "frontend/text/lines.h"
#include "models/dependency_parser/data.h"
#include "models/dependency_parser/model.h"
#include "tests/models/dependency_parser_rows.h"
#include "tests/support/input_checks.h"
#include "tests/support/xz.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;
using task::Split;
using test::refuses;
using test::TempDir;
using test::write_bytes;

// Sentences of two tokens in three columns, "a0 b0", "a1 b1", ....
std::string pairs(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("a{}\tX\t2\nb{}\tY\t0\n\n", i, i);
  return text;
}

TEST_CASE("treebank: the file of a split, by the end of its name, packed or not, here or below") {
  TempDir folder;
  const auto size = [&](Split split) {
    return load_treebank({.source = folder.path()}, split).sentences.size();
  };
  write_bytes(folder / "en_ewt-ud-train.conllu.xz", test::xz(conll_row(1, "a", "X", 0, "root")));
  write_bytes(folder / "english_dev.conll.gz", test::gzip(pairs(2)));
  write_bytes(folder / "test.dp", pairs(3));
  write_bytes(folder / "readme-train.txt", "no treebank");
  write_bytes(folder / "contest.conllu", "no test");
  CHECK(size(Split::kTrain) == 1);
  CHECK(size(Split::kValid) == 2);
  CHECK(size(Split::kTest) == 3);
  fs::create_directories(folder / "inner/treebank");
  fs::rename(folder / "test.dp", folder / "inner/treebank/wsj.test.conllx");
  CHECK(load_treebank({.source = folder / "inner"}, Split::kTest).sentences.size() == 3);
  // A plain file beside its packed self is the same one.
  write_bytes(folder / "english_dev.conll", pairs(4));
  CHECK(size(Split::kValid) == 4);
}

TEST_CASE("treebank: files that are absent, several or wrong") {
  TempDir folder;
  const auto load = [&](Split split) {
    return [&, split] { load_treebank({.source = folder.path()}, split); };
  };
  CHECK(refuses(ErrorKind::kIo, "expected a file *dev.conllu, .conllx, .conll, .dp or .mrg, plain",
                load(Split::kValid)));
  write_bytes(folder / "a-train.conllu", conll_row(1, "a", "X", 0, "root"));
  write_bytes(folder / "b-train.conllu.xz", "any");
  CHECK(refuses(ErrorKind::kBadInput,
                "expected one treebank, got a-train.conllu and b-train.conllu",
                load(Split::kTrain)));
  write_bytes(folder / "dev.conllu", "");
  CHECK(refuses(ErrorKind::kBadInput, "dev.conllu: expected content", load(Split::kValid)));
  write_bytes(folder / "dev.conllu",
              conll_row(1, "a", "X", 0, "root") + conll_row(2, "\xFF", "X", 1, "dep"));
  CHECK(refuses(ErrorKind::kBadInput, "dev.conllu: line 2: expected UTF-8, got ff at byte 3",
                load(Split::kValid)));
  write_bytes(folder / "dev.conllu",
              conll_row(1, "a", "X", 0, "root") + conll_row(2, "b", "X", 0, "root"));
  CHECK(
      refuses(ErrorKind::kBadInput, "dev.conllu: line 1: expected one root", load(Split::kValid)));
  fs::rename(folder / "dev.conllu", folder / "dev.conll");
  CHECK_NOTHROW(load(Split::kValid)());
}

TEST_CASE("treebank: one file is shared out in its order") {
  TempDir folder;
  const auto forms = [&](Split split) {
    std::vector<std::string> forms;
    const Treebank treebank = load_treebank({.source = folder / "all.dp"}, split);
    for (const Sentence& sentence : treebank.sentences) forms.emplace_back(sentence.forms[0]);
    return forms;
  };
  write_bytes(folder / "all.dp", pairs(25));
  CHECK(forms(Split::kTrain).size() == 21);
  CHECK(forms(Split::kTrain).front() == "a0");
  CHECK(forms(Split::kValid) == std::vector<std::string>{"a21", "a22"});
  CHECK(forms(Split::kTest) == std::vector<std::string>{"a23", "a24"});
  CHECK(load_treebank({.source = folder / "all.dp"}, Split::kTest)
            .name.ends_with("all.dp, sentences 24 to 25"));
  write_bytes(folder / "all.dp", pairs(9));
  CHECK(refuses(ErrorKind::kBadInput, "expected at least 10 sentences, got 9",
                [&] { forms(Split::kTest); }));
}

TEST_CASE("treebank: the test file is opened when its stream is asked for, and not before") {
  TempDir folder;
  write_bytes(folder / "train.dp", pairs(3));
  write_bytes(folder / "test.dp", "broken\n");
  const task::DataRequest request{.source = folder.path()};
  const auto splits = DependencyParser().prepare(request, nullptr).splits;
  CHECK(splits->stream(Split::kTrain, {.batch = 4, .shuffle = 1})->rows() == 12);
  CHECK(refuses(ErrorKind::kBadInput, "test.dp: line 1: expected 10 columns",
                [&] { splits->stream(Split::kTest, {}); }));
}

TEST_CASE("treebank: lines of a user are rows, or words with their tags") {
  const auto of = [](const std::vector<std::string>& lines) { return treebank_of_lines(lines); };
  const Treebank words = of({"Dogs_NNS bark_VBP ._.", "", "a_b_NN"});
  REQUIRE(words.sentences.size() == 2);
  CHECK(words.sentences[0].forms == std::vector<std::string_view>{"Dogs", "bark", "."});
  CHECK(words.sentences[0].tags == std::vector<std::string_view>{"NNS", "VBP", "."});
  CHECK(words.sentences[1].forms[0] == "a_b");
  CHECK(words.sentences[0].block.starts_with("1\tDogs\t_\tNNS\tNNS\t_\t_\t_\t_\t_\n2\tbark\t"));
  const Treebank rows =
      of({"# one", "1\ta\t_\tX\tX\t_\t_\t_\t_\t_", "", "1\tb\t_\tX\tX\t_\t_\t_\t_\t_"});
  REQUIRE(rows.sentences.size() == 2);
  CHECK(rows.sentences[0].block.starts_with("# one\n1\ta"));
  CHECK(of({}).sentences.empty());
  CHECK(of({"", " "}).sentences.empty());
  const auto refused = [&](const std::vector<std::string>& lines, std::string_view expected) {
    return refuses(ErrorKind::kBadInput, expected, [&] { of(lines); });
  };
  CHECK(refused({"a_X", "b"}, "standard input: line 2: expected word_TAG, got 'b'"));
  CHECK(refused({"_X"}, "line 1: expected word_TAG, got '_X'"));
  CHECK(refused({"a_"}, "line 1: expected word_TAG, got 'a_'"));
  CHECK(refused({"a_X", "\xE9_X"}, "standard input: line 2: expected UTF-8"));
  CHECK(refused({"1\ta"}, "standard input: line 1: expected 10 columns"));
}

TEST_CASE("transition rows: the first sentences alone, and how many rows that leaves out") {
  TempDir folder;
  write_bytes(folder / "train.dp", pairs(10));
  const task::DataRequest request{.source = folder.path(), .train_rows = 4};
  const auto stream = DependencyParser()
                          .prepare(request, nullptr)
                          .splits->stream(Split::kTrain, {.batch = 3, .shuffle = 1});
  CHECK(stream->rows() == 16);
  REQUIRE(stream->skipped().size() == 2);
  CHECK(stream->skipped()[0].rows == 24);
  CHECK(stream->skipped()[0].why == "of sentences beyond the first 4");
  CHECK(stream->skipped()[1].rows == 1);
}

// The text without DEPS, column 9, and without empty nodes.
std::string without_deps(std::string_view text) {
  std::string out;
  text::Lines lines(text);
  while (const auto line = lines.next()) {
    const std::string_view id = line->text.substr(0, line->text.find('\t'));
    const bool is_row = !line->text.empty() && !line->text.starts_with('#');
    if (is_row && id.find('.') != id.npos) continue;
    std::string row(line->text);
    if (is_row) {
      const std::size_t last = row.rfind('\t'), deps = row.rfind('\t', last - 1) + 1;
      row.replace(deps, last - deps, "_");
    }
    out += row + "\n";
  }
  return out;
}

TEST_CASE("treebank: the real files" * doctest::test_suite("slow")) {
  const char* root = std::getenv("KEEL_DATA");
  if (root == nullptr) {
    MESSAGE("skipped: KEEL_DATA names no folder with treebank/ in it");
    return;
  }
  const Treebank train = load_treebank({.source = root}, Split::kTrain);
  CHECK(train.sentences.size() == 12544);
  const Symbols symbols(train, 2);
  CHECK(symbols.labels().size() == 51);
  CHECK(symbols.tags().size() == 49 + 2);
  CHECK(symbols.labels().places().from_root[std::size_t(symbols.labels().number("root") - 1)]);
  std::string text;
  for (const Sentence& sentence : train.sentences) {
    text += with_arcs(sentence, sentence.heads, sentence.labels) + "\n";
  }
  CHECK((text == without_deps(*train.text)));
  CHECK(load_treebank({.source = root}, Split::kValid).sentences.size() == 2001);
  CHECK(load_treebank({.source = root}, Split::kTest).sentences.size() == 2077);
  const std::string sample = std::string(root) + "/treebank/wsj_sample.dp.xz";
  CHECK(load_treebank({.source = sample}, Split::kTrain).sentences.size() == 3132);
  CHECK(load_treebank({.source = sample}, Split::kValid).sentences.size() == 391);
  CHECK(load_treebank({.source = sample}, Split::kTest).sentences.size() == 391);
}

}  // namespace
}  // namespace keel::models
