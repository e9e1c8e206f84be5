// A user's own labelled sentences: every form, splits that have no file, and each way to be wrong.
#include <algorithm>
#include <set>

#include "models/text_classifier/labelled_text.h"
#include "models/text_classifier/own_files.h"
#include "tests/support/input_checks.h"
#include "tests/support/xz.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;
using test::gzip;
using test::refuses;
using test::TempDir;
using test::write_bytes;
using test::xz;
using Words = std::vector<std::string>;

// "LABEL|TEXT" of each row.
Words rows_of(const fs::path& path) {
  Words rows;
  for (const LabelledText& row : read_labelled(path).rows)
    rows.push_back(row.label + "|" + row.text);
  return rows;
}

Words rows_of(const char* name, std::string_view content) {
  TempDir folder;
  write_bytes(folder / name, content);
  return rows_of(folder / name);
}

bool same_rows(const Sentences& a, const Sentences& b) {
  return std::ranges::equal(
      a, b, [](const auto& x, const auto& y) { return x.label == y.label && x.words == y.words; });
}

void write_three(const TempDir& folder) {
  write_bytes(folder / "train.txt", "NUM How far\nDESC:def What Is\tit\nNUM a\n");
  write_bytes(folder / "dev.csv", "text,label\n\"Far, \"\"far\"\"\nout\",NUM\n");
  write_bytes(folder / "test.jsonl", "{\"text\": \"why\", \"label\": \"DESC:def\"}\n");
}

TEST_CASE("labelled text: the four forms") {
  const Words expected{"A b|one , two", "3|three"};
  CHECK(rows_of("x.tsv", "A b\tone , two\n3\tthree\r\n") == expected);
  CHECK(rows_of("x.csv", "id,Label, text\n7, A b ,\"one , two\"\n8,3,three\n") == expected);
  CHECK(rows_of("x.jsonl",
                "{\"label\": \"A b\", \"text\": \"one , two\", \"more\": [1]}\n"
                "{\"text\": \"three\", \"label\": 3}\n") == expected);
  CHECK(rows_of("x.txt", "A one , two\n3\tthree") == Words{"A|one , two", "3|three"});
  CHECK(rows_of("x.csv.gz", gzip("label,text\na,b\n")) == Words{"a|b"});
  CHECK(rows_of("x.jsonl.xz", xz("{\"label\": -1, \"text\": \"b\"}")) == Words{"-1|b"});
  CHECK(rows_of("x.txt",
                "\xEF\xBB\xBF"
                "a b\n") == Words{"a|b"});
  CHECK(rows_of("x.txt", "a caf\xE9\n") == Words{"a|caf\u00E9"});
}

TEST_CASE("labelled text: refusals name file, line, what was expected and what came") {
  const auto refused = [](const char* name, std::string_view content, std::string_view text) {
    return refuses(ErrorKind::kBadInput, text, [&] { rows_of(name, content); });
  };
  CHECK(refused("x.txt", "a b\n\nc d\n",
                "x.txt: line 2: expected LABEL, a blank or tab and TEXT, got an empty line"));
  CHECK(refused("x.txt", "a b\nword\n",
                "line 2: expected LABEL, a blank or tab and TEXT, got 'word'"));
  CHECK(refused("x.txt", "a  \n",
                "line 1: expected LABEL, a blank or tab and TEXT, got the label 'a' "
                "and no text"));
  CHECK(refused("x.txt", " a b\n",
                "line 1: expected LABEL, a blank or tab and TEXT, got an empty label"));
  CHECK(refused("x.txt", "(3 (2 a) (1 b))\n", "got a tree of SST, which model.task=sst5 reads"));
  CHECK(refused("x.tsv", "a\tb\nc d\n", "line 2: expected LABEL, a tab and TEXT, got 'c d'"));
  CHECK(refused("x.csv", "class,text\na,b\n",
                "line 1: expected a first line that names the columns, label and text once each, "
                "with commas between, got 'class,text'"));
  CHECK(refused("x.csv", "label,text,label\na,b,c\n", "label and text once each"));
  CHECK(refused("x.csv", "label,text\na,b\nc\n", "line 3: expected 2 fields"));
  CHECK(refused("x.csv", "label,text\na,b,c\n", "line 2: expected 2 fields"));
  CHECK(refused("x.csv", "label,text\na,b\n\nc,d\n",
                "line 3: expected 2 fields with commas between, a "
                "label and a text among them, got an empty line"));
  CHECK(refused("x.csv", "label,text\na,\"b\n", "x.csv: line 2: expected a quote that closes"));
  CHECK(refused("x.csv", "label,text\n\"two\nlines\",b\n",
                "line 2: expected a label of at most 200 "
                "bytes without control characters, got 'two?lines' (9 bytes)"));
  CHECK(refused("x.csv", "label,text\n",
                "expected 2 fields with commas between, a label and a text "
                "among them, got no such line"));
  CHECK(
      refused("x.jsonl", "{\"label\": \"a\"}\n",
              "line 1: expected a JSON object {\"label\": ..., \"text\": ...} with each key once, "
              "got '{\"label\""));
  CHECK(refused("x.jsonl", "{\"label\": \"a\", \"text\": \"b\", \"label\": \"c\"}\n",
                "with each key once, got '{\"label\""));
  CHECK(refused(
      "x.jsonl", "{\"label\": 1.0, \"text\": \"a\"}\n",
      "line 1: expected a label that is a text or a whole number, such as \"1\" or 1, got 1.0"));
  CHECK(refused("x.jsonl", "{\"label\": null, \"text\": \"a\"}\n",
                "whole number, such as \"1\" or 1, "
                "got null"));
  CHECK(refused("x.jsonl", "{\"label\": 1, \"text\": [\"a\"]}\n",
                "line 1: expected a text in quotation marks, got [\"a\"]"));
  CHECK(refused("x.jsonl", "[1]\n", "line 1: expected a JSON object"));
  CHECK(refused("x.jsonl", "{\"label\": \"\", \"text\": \"a\"}\n", "got an empty label"));
  CHECK(refused("x.jsonl", "{\"label\": \"a\", \"text\": \"\xE9\"}\n", "line 1: expected UTF-8"));
  CHECK(refused("x.txt", std::string(201, 'l') + " t\n", "(201 bytes)"));
  CHECK(rows_of("x.txt", std::string(200, 'l') + " t\n").size() == 1);
  CHECK(refused("x.tsv", "a\x7f\tb\n", "without control characters, got 'a?' (2 bytes)"));
  CHECK(refused("x.txt", "", "expected content"));
}

TEST_CASE("own files: three splits, each in a form of its own") {
  TempDir folder;
  write_three(folder);
  const Corpus corpus = read_own_files(folder.path(), {});
  CHECK(corpus.labels == Words{"DESC:def", "NUM"});
  CHECK(same_rows(corpus.train, {{1, {"how", "far"}}, {0, {"what", "is", "it"}}, {1, {"a"}}}));
  CHECK(same_rows(corpus.valid, {{1, {"far,", "\"far\"", "out"}}}));
  CHECK(same_rows(corpus.test(), {{0, {"why"}}}));
  CHECK(corpus.files[0] == folder / "train.txt");
  CHECK(corpus.files[1] == folder / "dev.csv");
  CHECK(corpus.files[2] == folder / "test.jsonl");
  CHECK(corpus.skipped.empty());
  CHECK(read_own_files(folder.path(), {.lower_case = false}).train[0].words == Words{"How", "far"});
  fs::rename(folder / "dev.csv", folder / "val.csv");
  CHECK(same_rows(read_own_files(folder.path(), {}).valid, corpus.valid));
}

TEST_CASE("own files: numbers come in order of their size, words after them") {
  TempDir folder;
  write_three(folder);
  write_bytes(folder / "train.txt", "10 a\nNUM a\n9 a\nDESC:def a\n2 a\nb a\n");
  CHECK(read_own_files(folder.path(), {}).labels == Words{"2", "9", "10", "DESC:def", "NUM", "b"});
}

TEST_CASE("own files: known labels keep their places, and others are refused") {
  TempDir folder;
  write_three(folder);
  const OwnFilesOptions known{.labels = {"X", "NUM", "DESC:def"}};
  const Corpus corpus = read_own_files(folder.path(), known);
  CHECK(corpus.labels == known.labels);
  CHECK(corpus.train[1].label == 2);
  CHECK(refuses(ErrorKind::kBadInput,
                "train.txt: line 2: expected one of the labels NUM, got 'DESC:def'",
                [&] { read_own_files(folder.path(), {.labels = {"NUM"}}); }));
  write_bytes(folder / "dev.csv", "label,text\nNUM,\"a\nb\"\nnum,a\n");
  CHECK(refuses(ErrorKind::kBadInput,
                "dev.csv: line 4: expected one of the labels DESC:def, NUM, got 'num'",
                [&] { read_own_files(folder.path(), {}); }));
}

TEST_CASE("own files: of many labels a message shows a few") {
  std::vector<std::string> many;
  for (int i = 0; i < 25; ++i) many.push_back(fmt::format("{}", i));
  CHECK(shown_labels(many).ends_with(", 18, 19 and 5 more"));
  CHECK(shown_labels(std::span(many).first(2)) == "0, 1");
}

TEST_CASE("own files: what has no file is a tenth of the training rows, drawn by the seed") {
  TempDir folder;
  std::string text;
  for (int i = 0; i < 57; ++i) text += fmt::format("{} row{}\n", i % 3, i);
  write_bytes(folder / "train.txt", text);
  const auto words = [](const Sentences& sentences) {
    Words all;
    for (const auto& sentence : sentences) all.push_back(sentence.words.at(0));
    return all;
  };
  const Corpus corpus = read_own_files(folder.path(), {.seed = 3}),
               other = read_own_files(folder.path(), {.seed = 4}),
               single = read_own_files(folder / "train.txt", {.seed = 3});
  CHECK(corpus.train.size() == 47);
  CHECK(corpus.valid.size() == 5);
  CHECK(corpus.test().size() == 5);
  std::set<std::string> all;
  for (const Sentences& part : {corpus.train, corpus.valid, corpus.test()}) {
    for (const std::string& word : words(part)) CHECK(all.insert(word).second);
  }
  CHECK(all.size() == 57);
  CHECK(same_rows(single.train, corpus.train));
  CHECK_FALSE(same_rows(other.valid, corpus.valid));
  CHECK(corpus.files[1] ==
        fmt::format("a tenth of {}, drawn by data.seed=3", (folder / "train.txt").string()));
  CHECK(corpus.files[2] == corpus.files[1]);
  const auto place = [](const std::string& word) { return std::stoi(word.substr(3)); };
  CHECK(std::ranges::is_sorted(words(corpus.train), {}, place));
  // A test file changes nothing of what is held out for validation.
  write_bytes(folder / "test.txt", "0 a\n");
  const Corpus tested = read_own_files(folder.path(), {.seed = 3});
  CHECK(same_rows(tested.valid, corpus.valid));
  CHECK(tested.train.size() == 52);
  CHECK(tested.test().size() == 1);
  write_bytes(folder / "train.txt", "0 a\n1 b\n");
  CHECK(refuses(ErrorKind::kBadInput,
                "expected at least 10 rows, of which some are held out, got 2",
                [&] { read_own_files(folder.path(), {}); }));
}

TEST_CASE("own files: files that are absent, or too many") {
  TempDir folder;
  const auto read = [&] { read_own_files(folder.path(), {}); };
  CHECK(refuses(ErrorKind::kIo, "expected train.txt, train.tsv, train.csv or train.jsonl, plain",
                read));
  write_bytes(folder / "Train.csv", "label,text\n");
  write_bytes(folder / "data.json", "[]");
  CHECK(refuses(ErrorKind::kIo,
                "got none of them (found Train.csv, data.json: no file named train.*", read));
  write_three(folder);
  write_bytes(folder / "valid.txt", "NUM a\n");
  CHECK(refuses(ErrorKind::kBadInput, "expected one file for valid, got valid.txt and dev.csv",
                read));
}

TEST_CASE("own files: the test file is read when it is asked for") {
  TempDir folder;
  write_three(folder);
  write_bytes(folder / "test.jsonl", "no\n");
  const Corpus corpus = read_own_files(folder.path(), {});
  CHECK(refuses(ErrorKind::kBadInput, "test.jsonl: line 1: expected a JSON object",
                [&] { corpus.test(); }));
}

}  // namespace
}  // namespace keel::models
