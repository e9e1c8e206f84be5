// Contiguous text in lanes: what is predicted from what, once each, and what is left out.
#include <algorithm>
#include <numeric>
#include <set>

#include "frontend/data/lane_rows.h"
#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using test::refuses;
using Ints = std::vector<std::int32_t>;

// Every token is its own place in the text.
std::shared_ptr<const TokenText> counted(std::int64_t tokens) {
  TokenText text{"counted", Ints(std::size_t(tokens))};
  std::iota(text.tokens.begin(), text.tokens.end(), 0);
  return std::make_shared<const TokenText>(std::move(text));
}

template <class T>
std::vector<T> lane_values(const Batch& batch, std::size_t place) {
  const std::span<const T> span = batch.values.at(place).as<T>();
  return {span.begin(), span.end()};
}

DataLoader lanes_of(std::int64_t tokens, const LaneOptions& options) {
  const StreamOptions stream{
      .batch = options.lanes,
      .shuffle = options.equal ? std::optional<std::uint64_t>(1) : std::nullopt};
  return {std::make_shared<const LaneRows>(counted(tokens), options), stream};
}

// The targets of an epoch in the order of lanes and steps; checks each batch on the way.
Ints targets_of(DataLoader& stream, std::int64_t lanes) {
  std::vector<Ints> by_lane(std::size_t(lanes), Ints{});
  for (std::int64_t step = 0; step < stream.steps(0); ++step) {
    const double items = stream.items(0, step);
    const Batch& batch = stream.at(0, step);
    const Ints input = lane_values<std::int32_t>(batch, 0),
               target = lane_values<std::int32_t>(batch, 1);
    double scored = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
      if (target[i] < 0) continue;
      ++scored;
      CHECK(target[i] == input[i] + 1);
      by_lane[i / std::size_t(batch.sizes[1])].push_back(target[i]);
    }
    CHECK(batch.items == scored);
    CHECK(items == scored);
    const std::uint8_t begins = step == 0 ? 1 : 0;
    CHECK(lane_values<std::uint8_t>(batch, 2) ==
          std::vector<std::uint8_t>(std::size_t(lanes), begins));
  }
  Ints all;
  for (const Ints& lane : by_lane) all.insert(all.end(), lane.begin(), lane.end());
  return all;
}

std::int64_t skipped(const DataLoader& stream) {
  std::int64_t sum = 0;
  for (const Skipped& left : stream.skipped()) {
    CHECK(left.unit == "tokens");
    sum += left.rows;
  }
  return sum;
}

TEST_CASE("lanes: a small text, batch by batch") {
  DataLoader stream = lanes_of(12, {.lanes = 2, .length = 2});
  CHECK(stream.rows() == 6);
  REQUIRE(stream.steps(0) == 3);
  CHECK(lane_values<std::int32_t>(stream.at(0, 0), 0) == Ints{0, 1, 6, 7});
  CHECK(lane_values<std::int32_t>(stream.at(0, 0), 1) == Ints{1, 2, 7, 8});
  CHECK(stream.at(0, 0).rows == std::vector<std::int64_t>{0, 3});
  CHECK(lane_values<std::int32_t>(stream.at(0, 1), 0) == Ints{2, 3, 8, 9});
  // 11 predictions: the first lane has 6 of them, the second 5 and one place of padding.
  CHECK(lane_values<std::int32_t>(stream.at(0, 2), 0) == Ints{4, 5, 10, 0});
  CHECK(lane_values<std::int32_t>(stream.at(0, 2), 1) == Ints{5, 6, 11, -1});
  CHECK(stream.at(0, 2).items == 3);
  CHECK(stream.skipped().empty());
}

TEST_CASE("lanes: tokens scored are all but the first and what is named, for any sizes") {
  for (const std::int64_t tokens : {2, 29, 64, 101}) {
    for (const std::int64_t lanes : {1, 3, 7}) {
      for (const std::int64_t length : {1, 4, 10, 200}) {
        if (tokens - 1 < lanes) continue;
        CAPTURE(tokens);
        CAPTURE(lanes);
        CAPTURE(length);
        DataLoader all = lanes_of(tokens, {.lanes = lanes, .length = length});
        Ints expected(std::size_t(tokens - 1));
        std::iota(expected.begin(), expected.end(), 1);
        CHECK(targets_of(all, lanes) == expected);
        CHECK(all.skipped().empty());
        for (const ShortSegment last : {ShortSegment::kUse, ShortSegment::kDrop}) {
          if (last == ShortSegment::kDrop && (tokens - 1) / lanes < length) continue;
          DataLoader equal =
              lanes_of(tokens, {.lanes = lanes, .length = length, .last = last, .equal = true});
          const Ints targets = targets_of(equal, lanes);
          CHECK(std::ranges::is_sorted(targets));
          CHECK(std::set(targets.begin(), targets.end()).size() == targets.size());
          CHECK(std::ssize(targets) == tokens - 1 - skipped(equal));
          CHECK(targets.front() == 1);
        }
      }
    }
  }
}

TEST_CASE("lanes: the last segment is used in its own shape or dropped, and then named") {
  // 22 predictions in 3 lanes of 7, and one that is left out.
  DataLoader used = lanes_of(23, {.lanes = 3, .length = 3, .equal = true});
  CHECK(used.steps(0) == 3);
  CHECK(used.shapes() == std::vector<Sizes>{{3, 3}, {3, 1}});
  CHECK(used.at(0, 2).sizes == Sizes{3, 1});
  REQUIRE(used.skipped().size() == 1);
  CHECK(used.skipped()[0].rows == 1);
  CHECK(used.skipped()[0].why == "too few to fill the lanes of the batch");
  DataLoader dropped =
      lanes_of(23, {.lanes = 3, .length = 3, .last = ShortSegment::kDrop, .equal = true});
  CHECK(dropped.steps(0) == 2);
  CHECK(dropped.shapes() == std::vector<Sizes>{{3, 3}});
  REQUIRE(dropped.skipped().size() == 2);
  CHECK(dropped.skipped()[1].rows == 3);
  CHECK(dropped.skipped()[1].why == "short segments at the ends of the lanes");
}

TEST_CASE("lanes: a batch depends on its epoch and step alone, and epochs are alike") {
  const auto make = [] { return lanes_of(60, {.lanes = 4, .length = 4, .equal = true}); };
  DataLoader straight = make();
  for (const std::uint32_t epoch : {0u, 3u}) {
    for (std::int64_t step = straight.steps(epoch); step-- > 0;) {
      DataLoader resumed = make();
      const Batch &a = straight.at(epoch, step), &b = resumed.at(0, step);
      for (std::size_t place : {LaneValue::kInput, LaneValue::kTarget}) {
        CHECK(lane_values<std::int32_t>(a, place) == lane_values<std::int32_t>(b, place));
      }
      CHECK(lane_values<std::uint8_t>(a, 2) == lane_values<std::uint8_t>(b, 2));
    }
  }
}

TEST_CASE("lanes: training and evaluation of a split have lanes of their own") {
  int made = 0;
  const LaneSplits splits({.length = 5, .evaluation_lanes = 3, .evaluation_length = 4},
                          [&](Split split) {
                            ++made;
                            return TokenText{std::string(name_of(split)), Ints(41, 7)};
                          });
  const auto train = splits.stream(Split::kTrain, {.batch = 2, .shuffle = 1});
  CHECK(train->source() == "train");
  CHECK(train->shapes() == std::vector<Sizes>{{2, 5}});
  for (const std::int64_t batch : {1, 7, 256}) {
    const auto rows = splits.stream(Split::kTrain, {.batch = batch});
    CHECK(rows->shapes() == std::vector<Sizes>{{3, 4}, {3, 2}});
    CHECK(rows->skipped().empty());
  }
  CHECK(made == 1);
  const LaneSplits tiny({.evaluation_lanes = 10}, [](Split) {
    return TokenText{"tiny", Ints{1, 2, 3}};
  });
  // Shorter than a segment, it is one lane, in which every token sees those before it.
  CHECK(tiny.stream(Split::kTest, {})->shapes() == std::vector<Sizes>{{1, 2}});
  const LaneSplits few({.evaluation_lanes = 10, .evaluation_length = 2}, [](Split) {
    return TokenText{"few", Ints{1, 2, 3, 4}};
  });
  CHECK(few.stream(Split::kTest, {})->shapes() == std::vector<Sizes>{{3, 1}});
}

TEST_CASE("lanes: segments of one lane that are evaluated together are those of one by one") {
  for (const std::int64_t tokens : {2, 4, 5, 9, 12, 13, 14, 21, 26}) {
    CAPTURE(tokens);
    const auto batches = [&](std::int64_t together) {
      const LaneSplits splits(
          {.evaluation_lanes = 1, .evaluation_length = 4, .evaluation_together = together},
          [&](Split) { return *counted(tokens); });
      const auto stream = splits.stream(Split::kTest, {.batch = 3});
      std::vector<Ints> segments;
      std::vector<std::int64_t> rows;
      for (std::int64_t step = 0; step < stream->steps(0); ++step) {
        const Batch& batch = stream->at(0, step);
        CHECK(std::ranges::count(stream->shapes(), batch.sizes) == 1);
        rows.insert(rows.end(), batch.rows.begin(), batch.rows.end());
        const Ints all = lane_values<std::int32_t>(batch, LaneValue::kTarget);
        for (std::int64_t i = 0; i < batch.sizes[0]; ++i) {
          const auto first = all.begin() + i * batch.sizes[1];
          segments.emplace_back(first, first + batch.sizes[1]);
        }
      }
      CHECK(std::ranges::is_sorted(rows));
      return std::pair(stream->steps(0), segments);
    };
    const auto [one_by_one, expected] = batches(0);
    const auto [steps, segments] = batches(3);
    CHECK(segments == expected);
    const std::int64_t whole = (tokens - 1) / 4;
    CHECK(one_by_one == (tokens + 2) / 4);
    CHECK(steps == (whole + 2) / 3 + ((tokens - 1) % 4 != 0 ? 1 : 0));
  }
}

TEST_CASE("lanes: refusals") {
  const auto refused = [](std::string_view text, std::int64_t tokens, const LaneOptions& options) {
    return refuses(ErrorKind::kUsage, text, [&] { LaneRows(counted(tokens), options); });
  };
  CHECK(refused("[lanes] lanes: expected 1 or more, got 0", 9, {.lanes = 0}));
  CHECK(refused("[lanes] length: expected 1 or more, got -2", 9, {.length = -2}));
  CHECK(refused("expected a text of at least 10 tokens for 9 lanes, got 9", 9, {.lanes = 9}));
  CHECK(refused("expected a text of at least 11 tokens for 2 lanes, got 10", 10,
                {.lanes = 2, .length = 5, .last = ShortSegment::kDrop, .equal = true}));
  CHECK(refused("at least 2 tokens for 1 lanes, got 1", 1, {}));
  DataLoader stream = lanes_of(12, {.lanes = 2, .length = 2});
  CHECK(refuses(ErrorKind::kUsage, "step: expected 0 to 2, got 3", [&] { stream.at(0, 3); }));
}

}  // namespace
}  // namespace keel::data
