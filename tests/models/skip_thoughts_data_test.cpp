// Ordered sentences: files, books, triples and their batches.
#include <doctest/doctest.h>

#include <set>

#include "models/skip_thoughts/data.h"
#include "models/skip_thoughts/files.h"
#include "models/skip_thoughts/stories.h"
#include "models/skip_thoughts/triples.h"
#include "tests/support/checks.h"
#include "tests/support/tar.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

using Texts = std::vector<std::string>;
using text::Dictionary;

TEST_CASE("skip_thoughts: stories are the same everywhere, and neighbours share their topic") {
  const OrderedText one = make_stories(), two = make_stories();
  CHECK(one.train[3].sentences == two.train[3].sentences);
  CHECK(count_sentences(one.train) == 200 * 40);
  std::int64_t same = 0, next = 0, pairs = 0;
  for (const Passage& story : one.train) {
    for (std::size_t i = 1; i < story.topics.size(); ++i, ++pairs) {
      same += story.topics[i] == story.topics[i - 1];
      next += story.topics[i] == (story.topics[i - 1] + 1) % kTopics;
    }
  }
  CHECK(same + next == pairs);
  CHECK(double(same) / double(pairs) == doctest::Approx(0.8).epsilon(0.02));
}

TEST_CASE("skip_thoughts: lines are sentences, empty ones end passages") {
  const test::TempDir folder;
  test::write_bytes(folder / "train.txt", "\n\nA  b\nc\td\ne\n\n\nf\ng\nh i");
  test::write_bytes(folder / "valid.txt", "a\nb\nc\n");
  test::write_bytes(folder / "test.txt", "a\nb\nc\n");
  const OrderedText text = read_ordered_text(folder.path(), true);
  REQUIRE(text.train.size() == 2);
  CHECK(text.train[0].sentences == Texts{"a b", "c d", "e"});
  CHECK(text.train[1].sentences == Texts{"f", "g", "h i"});
  CHECK(read_ordered_text(folder.path(), false).train[0].sentences[0] == "A b");
  CHECK(text.test()[0].sentences == Texts{"a", "b", "c"});
}

TEST_CASE("skip_thoughts: data.train_rows counts through all passages of the training text alone") {
  const test::TempDir folder;
  test::write_bytes(folder / "train.txt", "a\nb\nc\n\nd\ne\nf\n\ng\nh\ni\n");
  test::write_bytes(folder / "valid.txt", "a\nb\nc\nd\ne\nf\n");
  test::write_bytes(folder / "test.txt", "a\nb\nc\nd\ne\nf\n");
  const auto read = [&](std::int64_t rows) {
    return read_thoughts({.source = folder.path().string(), .train_rows = rows}, true);
  };
  const OrderedText text = read(5);
  CHECK(text.train[0].sentences == Texts{"a", "b", "c"});
  CHECK(text.train[1].sentences == Texts{"d", "e"});
  CHECK(text.train[2].sentences.empty());
  REQUIRE(text.skipped.size() == 1);
  CHECK(text.skipped[0].rows == 4);
  CHECK(count_sentences(text.valid) == 6);
  CHECK(count_sentences(text.test()) == 6);
  CHECK(count_sentences(read(0).train) == 9);
  CHECK(read(9).skipped.empty());
}

TEST_CASE("skip_thoughts: books of an archive are cut by place") {
  const test::TempDir folder;
  std::filesystem::create_directories(folder / "lm");
  std::string book = "\xEF\xBB\xBF";
  for (int i = 0; i < 200; ++i) book += fmt::format("Line {} don't end here. ", i);
  test::write_bytes(
      folder / "lm" / "books.tar",
      test::tar({{"books/a.txt", book}, {"books/._a.txt", "\xFF"}, {"books/readme.md", "x"}}));
  test::write_bytes(folder / "lm" / "._books.tar", "of macOS");
  const OrderedText text = read_ordered_text(folder.path(), true);
  CHECK(
      text.origin.ends_with("books.tar (1 books, each cut by place; left out: .md: 1, hidden: 1)"));
  REQUIRE(text.train.size() == 1);
  CHECK(text.train[0].sentences.size() == 192);
  CHECK(text.valid[0].sentences.size() == 4);
  CHECK(text.test()[0].sentences.size() == 4);
  CHECK(text.train[0].sentences[0] == "line 0 don 't end here .");
  CHECK(text.valid[0].sentences[0] == "line 192 don 't end here .");
  CHECK(text.test()[0].sentences[3] == "line 199 don 't end here .");
}

TEST_CASE("skip_thoughts: files that cannot be are refused") {
  const test::TempDir folder;
  const auto read = [&] { read_ordered_text(folder.path(), true); };
  test::check_refused(read, "[skip_thoughts] " + folder.path().string() + ": expected train.txt",
                      "", ErrorKind::kIo);
  test::write_bytes(folder / "train.txt", "a\nb\n\nc\n");
  const std::string train = (folder / "train.txt").string();
  test::check_refused(read, "[skip_thoughts] " + train + ": expected three sentences in a row", "",
                      ErrorKind::kBadInput);
  test::write_bytes(folder / "train.txt", "a\nb\nc\n");
  test::check_refused(read, "[skip_thoughts]", "expected valid.txt, valid.txt.gz or valid.txt.xz",
                      ErrorKind::kIo);
  test::write_bytes(folder / "train.txt", "a\nb\xFF\nc\n");
  test::check_refused(read, "[text] " + train, "line 2", ErrorKind::kBadInput);
}

TEST_CASE("skip_thoughts: archives that cannot be are refused") {
  const test::TempDir folder;
  const auto read = [&] { read_ordered_text(folder.path(), true); };
  test::write_bytes(folder / "a.tar", test::tar({{"readme.md", "x"}}));
  test::check_refused(read, "[skip_thoughts]", "expected books, files *.txt, got none",
                      ErrorKind::kBadInput);
  test::write_bytes(folder / "a.tar", test::tar({{"a.txt", "One. Two.\n\xFF"}}));
  test::check_refused(read, "[text] " + (folder / "a.tar").string() + ": a.txt", "line 2",
                      ErrorKind::kBadInput);
  test::write_bytes(folder / "a.tar", test::tar({{"a.txt", "One. Two."}}));
  test::check_refused(read, "[skip_thoughts]", "expected three sentences in a row",
                      ErrorKind::kBadInput);
  test::write_bytes(folder / "b.tar", test::tar({{"a.txt", "One."}}));
  test::check_refused(read, "[skip_thoughts]", "expected one archive, got 2", ErrorKind::kIo);
}

Dictionary letters() { return Dictionary({{"a", 9}, {"b", 8}, {"c", 7}}, {.multiple = 1}); }

TEST_CASE(
    "skip_thoughts: rows have neighbours in their passage, and none of the three is too long") {
  const std::vector<Passage> passages{{{"a", "b b", "c", "a a a", "b", "c", "a"}}, {{"a", "b"}}};
  const NumberedText text = number_text(passages, letters(), 2);
  CHECK(text.sentences.size() == 9);
  CHECK(text.rows == std::vector<std::int64_t>{1, 5});
  CHECK(text.dropped == 3);  // the long one and its neighbours
  CHECK(text.sentences[1] == Numbers{5, 5, Dictionary::kEnd});
}

TEST_CASE("skip_thoughts: a batch says its neighbours one word after") {
  const std::vector<Passage> passages{{{"a b", "c", "x", "b a c a"}}};
  data::DataLoader stream(triple_rows(passages, letters(), 9, {"letters"}), {.batch = 3});
  REQUIRE(stream.rows() == 2);
  const std::vector<std::int64_t> rows{1};
  const task::Batch& batch = stream.pick(rows);
  CHECK(batch.sizes == task::Sizes{1, 4, 8});
  CHECK(batch.items == 2 + 5);  // "c" and "b a c a", each with its end
  constexpr std::int32_t kPad = Dictionary::kPad, kEnd = Dictionary::kEnd, kUnk = Dictionary::kUnk;
  const auto numbers = [&](TripleInput place) {
    const auto all = batch.values[place].as<std::int32_t>();
    return Numbers(all.begin(), all.end());
  };
  CHECK(numbers(kWords) == Numbers{kUnk, kEnd, kPad, kPad});
  CHECK(numbers(kBeforeIn) == Numbers{kPad, 6, kPad, kPad, kPad, kPad, kPad, kPad});
  CHECK(numbers(kBeforeOut) == Numbers{6, kEnd, -1, -1, -1, -1, -1, -1});
  CHECK(numbers(kAfterIn) == Numbers{kPad, 5, 4, 6, 4, kPad, kPad, kPad});
  CHECK(numbers(kAfterOut) == Numbers{5, 4, 6, 4, kEnd, -1, -1, -1});
  const auto mask = batch.values[kAfterMask].as<std::uint8_t>();
  CHECK(std::vector<int>(mask.begin(), mask.end()) == std::vector<int>{1, 1, 1, 1, 1, 0, 0, 0});
}

}  // namespace
}  // namespace keel::models
