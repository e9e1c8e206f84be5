// The files of RT and SST5: every layout, splits, and each way a file can be wrong.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "models/text_classifier/files.h"
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

// "bad 0 ." to "bad N-1 .", or the same of "Good", one a line.
std::string lines(std::string_view word, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{} {} .\n", word, i);
  return text;
}

void write_rt(const fs::path& folder, int each) {
  fs::create_directories(folder);
  write_bytes(folder / "rt-polarity.neg", lines("bad", each));
  write_bytes(folder / "rt-polarity.pos", lines("Good", each));
}

void write_trees(const fs::path& folder) {
  fs::create_directories(folder);
  write_bytes(folder / "train.txt", "(3 (2 The) (4 Rock))\n(0 (1 -LRB-) (2 bad))\n");
  write_bytes(folder / "dev.txt", "(2 Plain)\n");
  write_bytes(folder / "test.txt", "(4 (3 Very) (4 good))");
}

void write_flat(const fs::path& folder) {
  fs::create_directories(folder);
  write_bytes(folder / "stsa.fine.train", "3 the rock\n0 -lrb- bad\n");
  write_bytes(folder / "stsa.fine.dev", "2 plain\r\n");
  write_bytes(folder / "stsa.fine.test", "4 very good");
}

bool same(const Sentences& a, const Sentences& b) {
  return std::ranges::equal(
      a, b, [](const auto& x, const auto& y) { return x.label == y.label && x.words == y.words; });
}

Sentences all_of(const Corpus& corpus) {
  Sentences all = corpus.train;
  const Sentences test = corpus.test();
  all.insert(all.end(), corpus.valid.begin(), corpus.valid.end());
  all.insert(all.end(), test.begin(), test.end());
  return all;
}

TEST_CASE("rt: the lines are shuffled by the seed and shared out") {
  TempDir folder;
  write_rt(folder.path(), 5331);
  const Corpus corpus = read_rt(folder.path(), 3, true), other = read_rt(folder.path(), 4, true);
  CHECK(corpus.labels == Words{"0", "1"});
  CHECK(corpus.train.size() == 8608);
  CHECK(corpus.valid.size() == 964);
  CHECK(corpus.test().size() == 1089);
  REQUIRE(corpus.skipped.size() == 1);
  CHECK(corpus.skipped[0].rows == 1);
  std::set<Words> seen;
  for (const text::LabelledSentence& sentence : all_of(corpus)) {
    CHECK(sentence.words[0] == (sentence.label == 1 ? "good" : "bad"));
    CHECK(seen.insert(sentence.words).second);
  }
  CHECK(seen.size() == 10661);
  CHECK(same(read_rt(folder.path(), 3, true).train, corpus.train));
  CHECK(!same(other.train, corpus.train));
  const auto good = std::ranges::count(corpus.train, 1, &text::LabelledSentence::label);
  CHECK(good > 4100);
  CHECK(good < 4500);
}

TEST_CASE("rt: fewer lines are shared out in proportion") {
  TempDir folder;
  for (int each : {6, 50, 500}) {
    CAPTURE(each);
    write_rt(folder.path(), each);
    const Corpus corpus = read_rt(folder.path(), 0, false);
    const std::int64_t n = 2 * each, kept = std::ssize(all_of(corpus));
    CHECK(std::ssize(corpus.train) == n * 8608 / 10661);
    CHECK(std::ssize(corpus.valid) == n * 964 / 10661);
    CHECK(std::ssize(corpus.test()) == n * 1089 / 10661);
    CHECK((corpus.skipped.empty() ? 0 : corpus.skipped[0].rows) == n - kept);
    CHECK(n - kept < 3);
  }
  write_rt(folder.path(), 5);
  CHECK(refuses(ErrorKind::kBadInput, "expected at least 12 sentences, got 10",
                [&] { read_rt(folder.path(), 0, true); }));
}

TEST_CASE("rt: packed, in the folder `sentences`, in either encoding, and what is said of it") {
  TempDir folder;
  write_rt(folder.path(), 50);
  const Corpus plain = read_rt(folder.path(), 1, true);
  CHECK(plain.origin == folder.path().string() + " (two files, UTF-8, plain; split 1)");
  CHECK(plain.notes(task::Split::kTrain).source == "RT train, " + plain.origin);
  CHECK(plain.notes(task::Split::kTest).source == "RT test, " + plain.origin);
  TempDir packed;
  fs::create_directories(packed / "sentences");
  write_bytes(packed / "sentences/rt-polarity.neg.xz", xz(lines("bad", 50)));
  write_bytes(packed / "sentences/rt-polarity.pos.gz", gzip(lines("Good", 50)));
  CHECK(same(all_of(read_rt(packed.path(), 1, true)), all_of(plain)));
  write_bytes(packed / "sentences/rt-polarity.pos.gz", gzip(lines("G\xD6\xD6"
                                                                  "d",
                                                                  50)));
  const Corpus western = read_rt(packed.path(), 1, true);
  CHECK(western.origin.find("Windows-1252, .gz") != std::string::npos);
  for (const text::LabelledSentence& sentence : western.train) {
    CHECK(sentence.words[0] == (sentence.label == 1 ? "g\u00F6\u00F6d" : "bad"));
  }
  CHECK(read_rt(folder.path(), 1, false).train.size() == plain.train.size());
  CHECK(!same(read_rt(folder.path(), 1, false).train, plain.train));  // "Good"
}

TEST_CASE("rt: an empty line is a sentence without words") {
  TempDir folder;
  write_rt(folder.path(), 50);
  write_bytes(folder / "rt-polarity.pos", "\n \n" + lines("good", 48));
  std::int64_t empty = 0;
  for (const text::LabelledSentence& s : all_of(read_rt(folder.path(), 1, true))) {
    empty += s.words.empty() && s.label == 1;
  }
  CHECK(empty >= 1);
  CHECK(empty <= 2);
}

TEST_CASE("rt: files that are absent or wrong") {
  TempDir folder;
  const auto read = [&] { read_rt(folder.path(), 0, true); };
  CHECK(refuses(ErrorKind::kIo,
                folder.path().string() + ": expected rt-polarity.pos and rt-polarity.neg", read));
  write_rt(folder.path(), 50);
  fs::remove(folder / "rt-polarity.neg");
  CHECK(refuses(ErrorKind::kIo, "expected rt-polarity.neg, rt-polarity.neg.gz or", read));
  write_bytes(folder / "rt-polarity.neg", "");
  CHECK(refuses(ErrorKind::kBadInput, "rt-polarity.neg: expected content", read));
  write_bytes(folder / "rt-polarity.neg", "fine\n\xE9 \x81\n");
  CHECK(refuses(ErrorKind::kBadInput, "rt-polarity.neg: line 2: expected UTF-8 or Windows-1252",
                read));
}

TEST_CASE("sst5: every layout gives the same sentences") {
  for (const std::string inner : {"", "sst-trees", "trees", "sentences/sst-trees"}) {
    CAPTURE(inner);
    TempDir trees;
    const fs::path place = inner.empty() ? trees.path() : trees / inner;
    write_trees(place);
    const Corpus corpus = read_sst5(trees.path(), true);
    CHECK(corpus.labels == Words{"0", "1", "2", "3", "4"});
    CHECK(corpus.origin == place.string() + " (trees, plain)");
    CHECK(same(corpus.train, {{3, {"the", "rock"}}, {0, {"(", "bad"}}}));
    CHECK(same(corpus.valid, {{2, {"plain"}}}));
    CHECK(same(corpus.test(), {{4, {"very", "good"}}}));
    CHECK(corpus.skipped.empty());
  }
  TempDir flat;
  write_trees(flat / "trees");
  for (const char* inner : {"", "sentences"}) {
    TempDir other;
    write_flat(other / inner);
    const Corpus corpus = read_sst5(other.path(), true);
    CHECK(corpus.origin.ends_with(" (labelled lines, plain)"));
    CHECK(same(all_of(corpus), all_of(read_sst5(flat.path(), true))));
  }
  CHECK(read_sst5(flat.path(), false).train[0].words == Words{"The", "Rock"});
}

TEST_CASE("sst5: packed files") {
  TempDir folder;
  write_bytes(folder / "train.txt.xz", xz("(3 a)"));
  write_bytes(folder / "dev.txt.gz", gzip("(3 b)"));
  write_bytes(folder / "test.txt.xz", xz("(3 c)"));
  const Corpus corpus = read_sst5(folder.path(), true);
  CHECK(corpus.origin.ends_with("(trees, .xz)"));
  CHECK(same(all_of(corpus), {{3, {"a"}}, {3, {"b"}}, {3, {"c"}}}));
}

TEST_CASE("sst5: the test file has to be there, and is opened only when it is asked for") {
  TempDir folder;
  write_trees(folder.path());
  write_bytes(folder / "test.txt", "no tree");
  const Corpus corpus = read_sst5(folder.path(), true);
  CHECK(refuses(ErrorKind::kBadInput, "test.txt: line 1: expected a tree of SST",
                [&] { corpus.test(); }));
  fs::remove(folder / "test.txt");
  CHECK(refuses(ErrorKind::kIo, "expected test.txt, test.txt.gz or test.txt.xz, got none",
                [&] { read_sst5(folder.path(), true); }));
}

TEST_CASE("sst5: files that are absent or wrong") {
  TempDir folder;
  const auto read = [&] { read_sst5(folder.path(), true); };
  CHECK(refuses(ErrorKind::kIo, "expected the trees of SST in train.txt (there or in sst-trees",
                read));
  CHECK(refuses(ErrorKind::kIo, "or stsa.fine.train (there", read));
  const auto refused = [&](std::string_view text, const char* name, std::string_view content) {
    write_bytes(folder / name, content);
    return refuses(ErrorKind::kBadInput, text, read);
  };
  write_flat(folder.path());
  const char* flat = "stsa.fine.train";
  CHECK(
      refused("stsa.fine.train: line 2: expected a label of 0 to 4, got '5'", flat, "3 a\n5 b\n"));
  for (const char* label : {"a", "-1", "3a"}) {
    CHECK(refused(fmt::format("line 1: expected a label of 0 to 4, got '{}'", label), flat,
                  fmt::format("{} 3\n", label)));
  }
  CHECK(refused("line 2: expected a label of 0 to 4, got ''", flat, "3 a\n\n3 b\n"));
  CHECK(refused("line 1: expected UTF-8, got ff at byte 3", flat, "3 \xFF\n"));
  CHECK(refused("stsa.fine.train: expected content", flat, ""));
  write_bytes(folder / flat, "3\n");
  CHECK(same(read_sst5(folder.path(), true).train, {{3, {}}}));
  write_trees(folder.path());
  CHECK(refused("train.txt: line 2: expected 1 more ')' at byte 5", "train.txt", "(3 a)\n(3 b\n"));
  write_trees(folder.path());
  CHECK(refused("dev.txt: line 1: expected a label of 0 to 4", "dev.txt", "(9 a)"));
  // Who has labelled sentences of his own is told what takes them.
  CHECK(
      refused("train.txt: line 1: expected a tree of SST, such as (3 (2 a) (4 b)), got 'pos a good "
              "film'; --set model.task=files takes sentences with labels of your own",
              "train.txt", "pos a good film\nneg no\n"));
  fs::remove(folder / "dev.txt");
  CHECK(refuses(ErrorKind::kIo, "--set model.task=files takes sentences with labels", read));
  CHECK(refuses(ErrorKind::kIo, "--set model.task=files takes sentences with labels",
                [&] { read_rt(folder.path(), 0, true); }));
}

// Whether the real files are there; says so if not.
const char* real_data() {
  const char* root = std::getenv("KEEL_DATA");
  if (root == nullptr) MESSAGE("skipped: KEEL_DATA names no folder with sentences/ in it");
  return root;
}

TEST_CASE("rt: the real files") {
  const char* root = real_data();
  if (root == nullptr) return;
  const Corpus corpus = read_rt(root, 0, true);
  CHECK(corpus.train.size() == 8608);
  CHECK(corpus.valid.size() == 964);
  CHECK(corpus.test().size() == 1089);
  CHECK(corpus.skipped.at(0).rows == 1);
  CHECK(corpus.origin.find("Windows-1252, .xz") != std::string::npos);
}

TEST_CASE("sst5: the real files" * doctest::test_suite("slow")) {
  const char* root = real_data();
  if (root == nullptr) return;
  const Corpus trees = read_sst5(root, true);
  CHECK(trees.origin.find("(trees, .xz)") != std::string::npos);
  CHECK(trees.train.size() == 8544);
  CHECK(trees.valid.size() == 1101);
  CHECK(trees.test().size() == 2210);
  std::vector<int> labels(5);
  for (const text::LabelledSentence& sentence : trees.train) {
    ++labels[static_cast<std::size_t>(sentence.label)];
  }
  CHECK(labels == std::vector{1092, 2218, 1624, 2322, 1288});
  // The labelled lines are the same sentences in another order.
  TempDir flat;
  for (const char* part : {"train", "dev", "test"}) {
    const std::string name = fmt::format("stsa.fine.{}.xz", part);
    fs::create_symlink(fs::path(root) / "sentences" / name, flat / name);
  }
  const auto sorted = [](const Corpus& corpus) {
    std::multiset<std::pair<std::int32_t, Words>> sentences;
    for (const text::LabelledSentence& s : all_of(corpus)) sentences.emplace(s.label, s.words);
    return sentences;
  };
  CHECK((sorted(trees) == sorted(read_sst5(flat.path(), true))));
}

}  // namespace
}  // namespace keel::models
