// The text classifier's data: which words have numbers, and what each stream holds.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "models/text_classifier/data.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;
using test::TempDir;
using test::write_bytes;

TextOptions options_of(const std::string& source, const std::string& task = "sst5") {
  TextOptions options;
  options.source = source;
  options.task = task;
  return options;
}

// Twenty sentences for training that all begin with "the" and end with a word of their own.
void write_flat(const TempDir& folder) {
  std::string train;
  for (int i = 0; i < 20; ++i) train += fmt::format("{} The film is rare{}\n", i % 5, i);
  write_bytes(folder / "stsa.fine.train", train);
  write_bytes(folder / "stsa.fine.dev", "1 the rare1 dev words words\n2\n");
  write_bytes(folder / "stsa.fine.test", "4 film film\n");
}

std::vector<std::int32_t> tokens(const task::Batch& batch) {
  const std::span<const std::int32_t> values = batch.values.at(0).as<std::int32_t>();
  return {values.begin(), values.end()};
}

TEST_CASE("text data: words of the training split have numbers, rare ones and others have none") {
  TempDir folder;
  write_flat(folder);
  const TextData data = TextData::load(options_of(folder.path()));
  CHECK(data.labels().size() == 5);
  CHECK(data.vocabulary().size() == 5);
  CHECK(data.vocabulary().word(2) == "film");
  CHECK(data.vocabulary().id("the") == 4);
  CHECK(data.vocabulary().count(text::Vocabulary::kUnk) == 20);
  auto valid = data.stream(task::Split::kValid, {.multiple = 1});
  CHECK(valid->rows() == 2);
  const task::Batch& batch = valid->at(0, 0);
  CHECK(batch.rows[0] == 1);  // the sentence without words is the shortest
  const std::vector<std::int32_t> first = tokens(batch);
  const auto length = static_cast<std::size_t>(batch.sizes[1]);
  CHECK(length == 5);
  CHECK(first[0] == 1);
  CHECK(first[1] == 0);
  CHECK(first[length] == 4);
  CHECK(std::all_of(first.begin() + 6, first.begin() + 10, [](auto token) { return token == 1; }));
  TextOptions all = options_of(folder.path());
  all.min_count = 1;
  all.lower_case = false;
  CHECK(TextData::load(all).vocabulary().size() == 2 + 3 + 20);
  CHECK(TextData::load(all).vocabulary().id("The") > 1);
}

TEST_CASE("text data: streams say what they are and what they leave out") {
  TempDir folder;
  write_flat(folder);
  TextOptions options = options_of(folder.path());
  options.train_rows = 15;
  const TextData data = TextData::load(options);
  const auto train = data.stream(task::Split::kTrain, {}),
             valid = data.stream(task::Split::kValid, {}),
             test = data.stream(task::Split::kTest, {});
  const std::string origin = folder.path().string() + " (labelled lines, plain)";
  CHECK(train->source() == origin + ", train");
  CHECK(valid->source() == origin + ", valid");
  CHECK(test->source() == origin + ", test");
  CHECK(train->rows() == 15);
  REQUIRE(train->left_out().size() == 1);
  CHECK(train->left_out()[0].rows == 5);
  CHECK(train->left_out()[0].why == "train_rows is 15");
  CHECK(valid->left_out().empty());
  CHECK(test->left_out().empty());
  CHECK(test->rows() == 1);
  CHECK(data.vocabulary().count(data.vocabulary().id("film")) == 15);
}

TEST_CASE("text data: training is shuffled, evaluation is sorted") {
  const TextData data = TextData::load({});
  const auto train = data.stream(task::Split::kTrain, {.max_tokens = 512});
  const auto valid = data.stream(task::Split::kValid, {.max_tokens = 512, .sorted = true});
  const std::vector<std::int64_t> drawn = train->at(0, 0).rows, rows = valid->at(0, 0).rows;
  CHECK(train->at(1, 0).rows != drawn);
  CHECK(valid->at(1, 0).rows == rows);
  const std::int64_t shortest = valid->at(0, 0).sizes[1];
  CHECK(valid->at(0, valid->steps(0) - 1).sizes[1] > shortest);
}

TEST_CASE("text data: the built-in sentences of both tasks") {
  const TextData two = TextData::load(options_of("builtin", "rt")),
                 five = TextData::load(options_of("builtin", "sst5"));
  CHECK(two.labels() == std::vector<std::string>{"0", "1"});
  CHECK(five.labels().size() == 5);
  CHECK(two.stream(task::Split::kTrain, {})->rows() == 4000);
  CHECK(two.stream(task::Split::kValid, {})->rows() == 500);
  CHECK(two.stream(task::Split::kTest, {})->rows() == 500);
  CHECK(two.stream(task::Split::kTest, {})->source() ==
        "polar test, built-in sentences of 2 classes");
  CHECK(two.vocabulary().size() > 590);
}

TEST_CASE("text data: an unreadable test file does not disturb training") {
  TempDir folder;
  write_flat(folder);
  write_bytes(folder / "stsa.fine.test", "no label\n");
  const TextData data = TextData::load(options_of(folder.path()));
  CHECK(data.stream(task::Split::kTrain, {})->rows() == 20);
  CHECK(refuses(ErrorKind::kBadInput, "stsa.fine.test: line 1: expected a label",
                [&] { data.stream(task::Split::kTest, {}); }));
}

TEST_CASE("text data: refusals") {
  const auto refused = [](ErrorKind kind, std::string_view text, const TextOptions& options) {
    return refuses(kind, text, [&] { TextData::load(options); });
  };
  TextOptions options = options_of("builtin");
  options.min_count = 0;
  CHECK(refused(ErrorKind::kUsage, "min_count: expected 1 or more", options));
  options = options_of("builtin");
  options.train_rows = -1;
  CHECK(refused(ErrorKind::kUsage, "train_rows: expected 0 or more, got -1", options));
  CHECK(refused(ErrorKind::kUsage, "expected rt, sst5 or files, got 'mr'",
                options_of("builtin", "mr")));
  CHECK(refused(ErrorKind::kIo, "nowhere: expected", options_of("nowhere", "rt")));
  CHECK(refused(ErrorKind::kIo, "nowhere: expected", options_of("nowhere")));
}

TEST_CASE("text data: the real files") {
  const char* root = std::getenv("KEEL_DATA");
  if (root == nullptr) {
    MESSAGE("skipped: KEEL_DATA names no folder with sentences/ in it");
    return;
  }
  for (const std::string task : {"rt", "sst5"}) {
    CAPTURE(task);
    const TextData data = TextData::load(options_of(root, task));
    const bool rt = task == "rt";
    const auto train = data.stream(task::Split::kTrain, {}),
               valid = data.stream(task::Split::kValid, {}),
               test = data.stream(task::Split::kTest, {});
    CHECK(train->rows() == (rt ? 8608 : 8544));
    CHECK(valid->rows() == (rt ? 964 : 1101));
    CHECK(test->rows() == (rt ? 1089 : 2210));
    MESSAGE(task << ": " << data.vocabulary().size() << " words, " << train->steps(0)
                 << " batches of " << train->shapes().size() << " shapes, padding "
                 << train->padding(0) << ", valid " << valid->padding(0));
    CHECK(train->padding(0) < 0.15);
    CHECK(train->steps(0) < 55);
    CHECK(data.vocabulary().size() > (rt ? 9000 : 7000));
    CHECK(data.vocabulary().size() < (rt ? 11000 : 9000));
  }
}

}  // namespace
}  // namespace keel::models
