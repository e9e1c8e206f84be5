// The text classifier's data: which words have numbers, and what each stream holds.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "models/text_classifier/model.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;
using test::TempDir;
using test::write_bytes;

using Options = std::vector<std::pair<std::string, std::string>>;

struct TextData {
  std::shared_ptr<const TextClassifierNetwork> network;
  std::shared_ptr<const task::Splits> splits;

  TextData(const task::DataRequest& request, const Options& options) {
    TextClassifier classifier;
    for (const auto& [key, value] : options) classifier.set_option(key, value);
    classifier.validate();
    const task::Prepared prepared = classifier.prepare(request, nullptr);
    network = std::dynamic_pointer_cast<const TextClassifierNetwork>(prepared.network);
    splits = prepared.splits;
  }
  const text::Vocabulary& vocabulary() const { return network->vocabulary(); }
  std::vector<std::string> labels() const { return network->class_names(); }
  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options = {.batch = 4096}) const {
    return splits->stream(split, options);
  }
};

TextData data_of(const std::string& source, const std::string& task = "sst5") {
  return {{.source = source}, {{"task", task}}};
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
  const TextData data = data_of(folder.path());
  CHECK(data.labels().size() == 5);
  CHECK(data.vocabulary().size() == 5);
  CHECK(data.vocabulary().word(2) == "film");
  CHECK(data.vocabulary().id("the") == 4);
  CHECK(data.vocabulary().count(text::Vocabulary::kUnk) == 20);
  auto valid = data.stream(task::Split::kValid);
  CHECK(valid->rows() == 2);
  const task::Batch& batch = valid->at(0, 0);
  CHECK(batch.rows[0] == 1);  // the sentence without words is the shortest
  const std::vector<std::int32_t> first = tokens(batch);
  const auto length = static_cast<std::size_t>(batch.sizes[1]);
  CHECK(length == 8);  // the bucket of five words
  CHECK(first[0] == 1);
  CHECK(first[1] == 0);
  CHECK(first[length] == 4);
  CHECK(std::all_of(first.begin() + 9, first.begin() + 13, [](auto token) { return token == 1; }));
  CHECK(std::all_of(first.begin() + 13, first.begin() + 16, [](auto token) { return token == 0; }));
  const TextData all({.source = folder.path()},
                     {{"task", "sst5"}, {"min_count", "1"}, {"lower_case", "false"}});
  CHECK(all.vocabulary().size() == 2 + 3 + 20);
  CHECK(all.vocabulary().id("The") > 1);
}

TEST_CASE("text data: streams say what they are and what they leave out") {
  TempDir folder;
  write_flat(folder);
  const TextData data({.source = folder.path(), .train_rows = 15}, {{"task", "sst5"}});
  const task::StreamOptions shuffled{.batch = 4096, .shuffle = 1};
  const auto train = data.stream(task::Split::kTrain, shuffled),
             valid = data.stream(task::Split::kValid, shuffled),
             test = data.stream(task::Split::kTest, shuffled);
  const std::string origin = folder.path().string() + " (labelled lines, plain)";
  CHECK(train->source() == "SST5 train, " + origin);
  CHECK(valid->source() == "SST5 valid, " + origin);
  CHECK(test->source() == "SST5 test, " + origin);
  CHECK(train->rows() == 15);
  REQUIRE(train->skipped().size() == 1);
  CHECK(train->skipped()[0].rows == 5);
  CHECK(train->skipped()[0].why == "beyond the first 15");
  CHECK(valid->skipped().empty());
  CHECK(test->skipped().empty());
  CHECK(test->rows() == 1);
  CHECK(data.vocabulary().count(data.vocabulary().id("film")) == 15);
}

TEST_CASE("text data: training is shuffled, evaluation is sorted") {
  const TextData data = data_of("builtin", "rt");
  const auto train = data.stream(task::Split::kTrain, {.batch = 512, .shuffle = 0});
  const auto valid = data.stream(task::Split::kValid, {.batch = 512});
  const std::vector<std::int64_t> drawn = train->at(0, 0).rows, rows = valid->at(0, 0).rows;
  CHECK(train->at(1, 0).rows != drawn);
  CHECK(valid->at(1, 0).rows == rows);
  const std::int64_t shortest = valid->at(0, 0).sizes[1];
  CHECK(valid->at(0, valid->steps(0) - 1).sizes[1] > shortest);
}

TEST_CASE("text data: the built-in sentences of both tasks") {
  const TextData two = data_of("builtin", "rt"), five = data_of("builtin", "sst5");
  CHECK(two.labels() == std::vector<std::string>{"0", "1"});
  CHECK(five.labels().size() == 5);
  CHECK(two.stream(task::Split::kTrain)->rows() == 4000);
  CHECK(two.stream(task::Split::kValid)->rows() == 500);
  CHECK(two.stream(task::Split::kTest)->rows() == 500);
  CHECK(two.stream(task::Split::kTest)->source() == "polar test, built-in sentences of 2 classes");
  CHECK(two.vocabulary().size() > 590);
}

TEST_CASE("text data: an unreadable test file does not disturb training") {
  TempDir folder;
  write_flat(folder);
  write_bytes(folder / "stsa.fine.test", "no label\n");
  const TextData data = data_of(folder.path());
  CHECK(data.stream(task::Split::kTrain)->rows() == 20);
  CHECK(refuses(ErrorKind::kBadInput, "stsa.fine.test: line 1: expected a label",
                [&] { data.stream(task::Split::kTest); }));
}

TEST_CASE("text data: refusals") {
  const auto refused = [](ErrorKind kind, std::string_view text, const std::string& source,
                          const Options& options) {
    return refuses(kind, text, [&] { TextData({.source = source}, options); });
  };
  CHECK(refused(ErrorKind::kUsage, "min_count: expected >= 1, got 0", "builtin",
                {{"min_count", "0"}}));
  CHECK(refused(ErrorKind::kUsage, "task: 'mr' is unknown", "builtin", {{"task", "mr"}}));
  CHECK(refused(ErrorKind::kIo, "nowhere: expected", "nowhere", {{"task", "rt"}}));
  CHECK(refused(ErrorKind::kIo, "nowhere: expected", "nowhere", {{"task", "sst5"}}));
}

TEST_CASE("text data: the real files" * doctest::test_suite("slow")) {
  const char* root = std::getenv("KEEL_DATA");
  if (root == nullptr) {
    MESSAGE("skipped: KEEL_DATA names no folder with sentences/ in it");
    return;
  }
  for (const std::string task : {"rt", "sst5"}) {
    CAPTURE(task);
    const TextData data = data_of(root, task);
    const bool rt = task == "rt";
    const auto train = data.stream(task::Split::kTrain, {.batch = 4096, .shuffle = 0}),
               valid = data.stream(task::Split::kValid), test = data.stream(task::Split::kTest);
    CHECK(train->rows() == (rt ? 8608 : 8544));
    CHECK(valid->rows() == (rt ? 964 : 1101));
    CHECK(test->rows() == (rt ? 1089 : 2210));
    double tokens = 0, positions = 0;
    for (std::int64_t step = 0; step < train->steps(0); ++step) {
      const task::Batch& batch = train->at(0, step);
      positions += double(batch.sizes[0] * batch.sizes[1]);
      for (const std::uint8_t word : batch.values[1].as<std::uint8_t>()) tokens += word;
    }
    MESSAGE(task << ": " << data.vocabulary().size() << " words, " << train->steps(0)
                 << " batches of " << train->shapes().size() << " shapes, padding "
                 << 1 - tokens / positions);
    CHECK(1 - tokens / positions < 0.15);
    CHECK(train->steps(0) < 55);
    CHECK(data.vocabulary().size() > (rt ? 9000 : 7000));
    CHECK(data.vocabulary().size() < (rt ? 11000 : 9000));
  }
}

}  // namespace
}  // namespace keel::models
