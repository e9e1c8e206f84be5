// Sentences as tensors: what stands where, padding, and rows that are short, long or empty.
#include "frontend/data/text_rows.h"

#include <algorithm>

#include "frontend/text/vocabulary.h"
#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using test::refuses;
using Ints = std::vector<std::int32_t>;
using Bytes = std::vector<std::uint8_t>;

template <class T>
std::vector<T> values(const Batch& batch, std::size_t place) {
  const std::span<const T> span = batch.values.at(place).as<T>();
  return {span.begin(), span.end()};
}

TextRows rows_of(std::initializer_list<std::pair<Ints, std::int32_t>> sentences) {
  TextRows rows({"polar test"});
  for (const auto& [tokens, label] : sentences) rows.add(tokens, label);
  return rows;
}

DataLoader text_stream(TextRows rows, const StreamOptions& options) {
  return {std::make_shared<TextRows>(std::move(rows)), options};
}

TEST_CASE("text rows: tokens, mask and labels, and rows of padding after them") {
  DataLoader stream = text_stream(rows_of({{{5, 6, 7}, 1}, {{8}, 0}, {{9, 2}, 4}}), {.batch = 16});
  REQUIRE(stream.steps(0) == 1);
  const Batch& batch = stream.at(0, 0);
  CHECK(batch.sizes == Sizes{4, 4});
  CHECK(batch.rows == std::vector<std::int64_t>{1, 2, 0, -1});
  CHECK(batch.items == 3);
  CHECK(stream.items(0, 0) == 3);
  REQUIRE(batch.values.size() == 3);
  CHECK(batch.values[0].type() == TensorType{DType::kI32, {4, 4}});
  CHECK(batch.values[1].type() == TensorType{DType::kU8, {4, 4}});
  CHECK(batch.values[2].type() == TensorType{DType::kI32, {4}});
  CHECK(values<std::int32_t>(batch, 0) == Ints{8, 0, 0, 0, 9, 2, 0, 0, 5, 6, 7, 0, 0, 0, 0, 0});
  CHECK(values<std::uint8_t>(batch, 1) == Bytes{1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0});
  CHECK(values<std::int32_t>(batch, 2) == Ints{0, 4, 1, -1});
}

TEST_CASE("text rows: nothing of an earlier batch is left in the next") {
  TextRows rows({"s"});
  for (std::int32_t row = 0; row < 9; ++row) rows.add(Ints(row < 8 ? 4 : 3, row + 2), row);
  DataLoader stream = text_stream(std::move(rows), {.batch = 16});
  REQUIRE(stream.steps(0) == 3);
  stream.at(0, 0);
  const Batch& last = stream.at(0, 2);
  CHECK(last.items == 1);
  CHECK(last.rows == std::vector<std::int64_t>{7, -1, -1, -1});
  CHECK(values<std::int32_t>(last, 0) == Ints{9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(values<std::uint8_t>(last, 1) == Bytes{1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(values<std::int32_t>(last, 2) == Ints{7, -1, -1, -1});
  CHECK(values<std::int32_t>(stream.at(0, 0), 0) ==
        Ints{10, 10, 10, 0, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4});
}

// Sums over an epoch, as a metric is formed: they may not depend on the batches.
TEST_CASE("text rows: totals of an epoch are those of the rows, for any size of batch") {
  for (std::int64_t max_tokens : {1, 33, 256, 4096}) {
    for (bool sorted : {false, true}) {
      CAPTURE(max_tokens);
      TextRows rows({"s"});
      for (std::int32_t row = 0; row < 875; ++row)
        rows.add(Ints(row * 7 % 40 + 1, row + 2), row % 5);
      StreamOptions options{.batch = max_tokens};
      if (!sorted) options.shuffle = 0;
      DataLoader stream = text_stream(std::move(rows), options);
      double items = 0;
      std::int64_t tokens = 0, words = 0, labels = 0;
      std::vector<int> seen(875);
      for (std::int64_t step = 0; step < stream.steps(1); ++step) {
        CHECK(stream.items(1, step) == stream.at(1, step).items);
        const Batch& batch = stream.at(1, step);
        items += batch.items;
        for (std::int64_t row : batch.rows) {
          if (row >= 0) ++seen[static_cast<std::size_t>(row)];
        }
        for (std::int32_t token : values<std::int32_t>(batch, 0)) tokens += token;
        for (std::uint8_t word : values<std::uint8_t>(batch, 1)) words += word;
        for (std::int32_t label : values<std::int32_t>(batch, 2)) labels += std::max(label, 0);
      }
      CHECK(items == 875);
      CHECK(std::ranges::count(seen, 1) == 875);
      std::int64_t expected_tokens = 0, expected_words = 0;
      for (int row = 0; row < 875; ++row) {
        expected_words += row * 7 % 40 + 1;
        expected_tokens += (row * 7 % 40 + 1) * (row + 2);
      }
      CHECK(words == expected_words);
      CHECK(tokens == expected_tokens);
      CHECK(labels == 875 / 5 * 10);
    }
  }
}

TEST_CASE("text rows: empty, one-word and very long sentences") {
  DataLoader stream =
      text_stream(rows_of({{{}, 1}, {{3}, 0}, {Ints(5000, 4), 1}}), {.batch = 4096});
  REQUIRE(stream.steps(0) == 2);
  const Batch& shorts = stream.at(0, 0);
  CHECK(shorts.items == 2);
  CHECK(values<std::int32_t>(shorts, 0)[0] == text::Vocabulary::kUnk);
  CHECK(values<std::uint8_t>(shorts, 1)[0] == 1);
  CHECK(values<std::int32_t>(shorts, 2)[0] == 1);
  const Batch& long_one = stream.at(0, 1);
  CHECK(long_one.rows == std::vector<std::int64_t>{2});
  CHECK(std::ranges::count(values<std::int32_t>(long_one, 0), 4) == 5000);
  CHECK(std::ranges::count(values<std::uint8_t>(long_one, 1), 1) == 5000);
}

TEST_CASE("text rows: what it says of itself") {
  TextRows rows({"RT train, here", {{1, "the split"}}});
  for (int row = 0; row < 40; ++row) rows.add(Ints(std::size_t(row + 1), 2), 0);
  CHECK(text_stream(rows, {.batch = 64}).skipped().size() == 1);  // an evaluation
  DataLoader stream = text_stream(std::move(rows), {.batch = 64, .shuffle = 0});
  CHECK(stream.source() == "RT train, here");
  CHECK(stream.rows() == 40);
  REQUIRE(stream.skipped().size() == 1);
  CHECK(stream.skipped()[0].rows == 1);
  CHECK(stream.skipped()[0].why == "the split");
  const std::vector<Sizes> shapes = stream.shapes();
  CHECK(shapes.front() == Sizes{2, 32});  // 64 positions, and the longest of those
  for (std::uint32_t epoch = 0; epoch < 30; ++epoch) {
    for (std::int64_t step = 0; step < stream.steps(epoch); ++step) {
      CHECK(std::ranges::count(shapes, stream.at(epoch, step).sizes) == 1);
    }
  }
}

TEST_CASE("text rows: refusals") {
  TextRows rows({"s"});
  CHECK(refuses(ErrorKind::kUsage, "token: expected 1 or more, got 0", [&] {
    rows.add(Ints{2, 0}, 1);
  }));
  CHECK(refuses(ErrorKind::kUsage, "label: expected 0 or more, got -1",
                [&] { rows.add(Ints{2}, -1); }));
  CHECK(rows.size() == 0);
  CHECK(refuses(ErrorKind::kUsage, "rows: expected 1 to", [&] { text_stream(rows, {}); }));
  rows.add(Ints{2}, 1);
  DataLoader stream = text_stream(rows, {});
  CHECK(refuses(ErrorKind::kUsage, "step: expected 0 to 0, got 1", [&] { stream.at(0, 1); }));
  CHECK(refuses(ErrorKind::kUsage, "step: expected 0 to 0, got 1", [&] { stream.items(0, 1); }));
}

}  // namespace
}  // namespace keel::data
