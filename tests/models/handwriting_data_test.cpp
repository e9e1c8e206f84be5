// Alphabets, scales, the built-in lines, and batches of them.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "models/handwriting/builtin.h"
#include "models/handwriting/data.h"
#include "tests/support/checks.h"

namespace keel::models {
namespace {

TEST_CASE("handwriting alphabet: letters have numbers, everything else has one") {
  const Alphabet letters = Alphabet::of_letters();
  CHECK(letters.size() == 57);
  CHECK(letters.numbers("ABz .", "here") == std::vector<std::int32_t>{0, 1, 51, 52, 53});
  // A character of three bytes is one character.
  CHECK(letters.numbers("7\xE2\x82\xAC!", "here") == std::vector<std::int32_t>{56, 56, 56});
  CHECK(letters.numbers("", "here").empty());
  const Alphabet few("abc");
  CHECK(few.size() == 3);
  CHECK(few.numbers("cab", "here") == std::vector<std::int32_t>{2, 0, 1});
}

TEST_CASE("handwriting alphabet: refusals") {
  const Alphabet few("abc");
  test::check_refused([&] { few.numbers("abz", "f: line 2"); },
                      "f: line 2: expected characters of 'abc', got 'z'", "", ErrorKind::kBadInput);
  test::check_refused([&] { few.numbers("a\xE2\x82\xAC", "f: line 2"); },
                      "f: line 2: expected characters of 'abc', got '\xE2\x82\xAC'", "",
                      ErrorKind::kBadInput);
  for (const Alphabet& alphabet : {few, Alphabet::of_letters()}) {
    test::check_refused([&] { alphabet.numbers("ab\xFF", "f: line 2"); },
                        "f: line 2: expected UTF-8, got ff at byte 3", "", ErrorKind::kBadInput);
    test::check_refused([&] { alphabet.numbers("a\x01", "f: line 2"); },
                        "f: line 2: expected a text without control characters, got 01 at byte 2",
                        "", ErrorKind::kBadInput);
  }
  test::check_refused([] { Alphabet("aba"); }, "alphabet: expected ASCII characters, each once", "",
                      ErrorKind::kBadInput);
  test::check_refused([] { Alphabet::parse(""); }, "alphabet: expected", "", ErrorKind::kBadInput);
}

TEST_CASE("handwriting facts: a checkpoint's text gives them back, to the bit") {
  for (const Alphabet& alphabet : {Alphabet("abc"), Alphabet::of_letters()}) {
    const HandwritingFacts facts{alphabet, {0.1, -1.0 / 3, 42.5, 1e-3}};
    const HandwritingFacts again = HandwritingFacts::parse(facts.assets());
    CHECK(again.assets() == facts.assets());
    CHECK(again.alphabet.size() == alphabet.size());
    CHECK(again.scale.mean_y == -1.0 / 3);
  }
  for (const char* scale : {"1 2 3", "1 2 3 4 5", "1 2 0 4", "1 2 x 4", "1 2 3 inf"}) {
    test::check_refused(
        [&] {
          HandwritingFacts::parse({{"alphabet", "abc"}, {"scale", scale}});
        },
        "scale: expected two means and two deviations", "", ErrorKind::kBadInput);
  }
  test::check_refused(
      [] {
        HandwritingFacts::parse({{"alphabet", "abc"}});
      },
      "expected the asset scale, got none", "", ErrorKind::kBadInput);
}

TEST_CASE("handwriting scale: offsets come to mean 0 and deviation 1, first points left out") {
  const WrittenLines lines{{{0}, {{9, 9, false}, {1, 5, false}, {3, 5, true}}},
                           {{0}, {{9, 9, false}, {5, 5, false}, {7, 5, true}}}};
  const OffsetScale scale = OffsetScale::of(lines);
  CHECK(scale.mean_x == 4);
  CHECK(scale.mean_y == 5);
  CHECK(scale.deviation_x == doctest::Approx(std::sqrt(5.0)));
  CHECK(scale.deviation_y == 1);  // all offsets are equal
  CHECK(scale.dx(scale.normal_x(3)) == doctest::Approx(3));
}

TEST_CASE("glyph strokes: 6 to 8 letters of 8 to 14 points, each lifted once, at its end") {
  const HandwritingCorpus corpus = make_glyph_strokes();
  CHECK(corpus.train.size() == 2000);
  CHECK(corpus.valid.size() == 200);
  CHECK(corpus.alphabet.size() == 8);
  std::set<std::size_t> texts;
  std::map<std::int32_t, std::size_t> points_of;  // of each letter
  for (const WrittenLine& line : corpus.train) {
    texts.insert(line.text.size());
    std::size_t letter = 0, count = 0;
    for (const PenPoint& p : line.points) {
      ++count;
      if (!p.lifts) continue;
      CHECK(count >= 8);
      CHECK(count <= 14);
      const auto [at, is_new] = points_of.emplace(line.text[letter], count);
      CHECK(at->second == count);
      count = 0;
      ++letter;
    }
    CHECK(letter == line.text.size());
    CHECK(count == 0);
    CHECK(line.points[0].dx == 0);
  }
  CHECK(texts == std::set<std::size_t>{6, 7, 8});
  CHECK(points_of.size() == 8);
}

TEST_CASE("glyph strokes: always the same lines, other ones in every part") {
  const HandwritingCorpus one = make_glyph_strokes(), two = make_glyph_strokes();
  CHECK(one.train[7].points[5].dx == two.train[7].points[5].dx);
  CHECK(one.train[7].points[5].dx != one.valid[7].points[5].dx);
  CHECK(one.train[7].points[5].dx != one.train[8].points[5].dx);
}

// Row i has counts[i] points, whose dx is 100 i + t, and i + 1 symbols.
std::vector<StrokeRow> numbered_rows(const std::vector<std::int64_t>& counts) {
  std::vector<StrokeRow> rows;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    StrokeRow row;
    for (std::int64_t t = 0; t < counts[i]; ++t) {
      row.points.insert(row.points.end(), {float(100 * i) + float(t), -float(t), float(t % 2)});
    }
    row.text.assign(i + 1, std::int32_t(i));
    rows.push_back(std::move(row));
  }
  return rows;
}

data::DataLoader stroke_stream(const std::vector<std::int64_t>& counts,
                               const StrokeOptions& options, const task::StreamOptions& batches) {
  return {std::make_shared<StrokeRows>(data::SplitNotes{"made up"}, numbered_rows(counts), options),
          batches};
}

TEST_CASE("stroke rows: time-major points, the next ones as targets, padding after") {
  data::DataLoader stream =
      stroke_stream({3, 6, 40}, {.longest = 10, .multiple = 4, .state = 5}, {.batch = 2});
  CHECK(stream.shapes() == std::vector<task::Sizes>{{1, 10, 3}, {1, 8, 3}, {1, 4, 3}});
  const std::int64_t both[] = {1, 0};
  const task::Batch& batch = stream.pick(both);
  CHECK(batch.sizes == task::Sizes{2, 8, 3});
  CHECK(batch.items == 2);
  const auto points = batch.values[StrokeValue::kPoints].as<float>();
  const auto targets = batch.values[StrokeValue::kTargets].as<float>();
  const auto mask = batch.values[StrokeValue::kMask].as<std::uint8_t>();
  for (std::size_t t = 0; t < 8; ++t) {
    CHECK(mask[2 * t] == (t < 5 ? 1 : 0));
    CHECK(mask[2 * t + 1] == (t < 2 ? 1 : 0));
    CHECK(points[6 * t] == (t < 5 ? 100 + float(t) : 0));
    CHECK(targets[6 * t] == (t < 5 ? 101 + float(t) : 0));
    CHECK(targets[6 * t + 3] == (t < 2 ? 1 + float(t) : 0));
    CHECK(targets[6 * t + 5] == (t < 2 ? float((t + 1) % 2) : 0));
  }
  const auto text = batch.values[StrokeValue::kText].as<std::int32_t>();
  CHECK(std::vector<std::int32_t>(text.begin(), text.end()) ==
        std::vector<std::int32_t>{1, 1, -1, 0, -1, -1});
  CHECK(batch.values[StrokeValue::kState].shape() == Shape{2, 5});
  const std::int64_t cut[] = {2};
  CHECK(stream.pick(cut).sizes == task::Sizes{1, 10, 3});
}

TEST_CASE("stroke rows: rows of padding hold nothing, whatever the batch before held") {
  std::vector<std::int64_t> counts(5, 4);
  data::DataLoader stream = stroke_stream(counts, {.longest = 9, .multiple = 3}, {.batch = 3});
  CHECK(stream.steps(0) == 2);
  stream.at(0, 0);
  const task::Batch& last = stream.at(0, 1);
  CHECK(last.rows == std::vector<std::int64_t>{3, 4, -1});
  CHECK(last.items == 2);
  for (std::size_t t = 0; t < 3; ++t) {
    CHECK(last.values[StrokeValue::kMask].as<std::uint8_t>()[3 * t + 2] == 0);
    CHECK(last.values[StrokeValue::kTargets].as<float>()[9 * t + 6] == 0);
  }
  CHECK(last.values[StrokeValue::kText].as<std::int32_t>().back() == -1);
}

TEST_CASE("stroke rows: lines are shuffled within their buckets, batches among each other") {
  std::vector<std::int64_t> counts;
  for (int i = 0; i < 40; ++i) counts.push_back(3 + i % 4 * 5);
  data::DataLoader stream =
      stroke_stream(counts, {.longest = 20, .multiple = 5}, {.batch = 4, .shuffle = 7});
  CHECK(stream.steps(0) == 12);
  std::vector<std::int64_t> points;
  for (std::int64_t step = 0; step < 12; ++step) points.push_back(stream.at(0, step).sizes[1]);
  CHECK(!std::ranges::is_sorted(points));
  const std::vector<std::int64_t> first = stream.at(0, 0).rows;
  stream.at(1, 0);
  stream.at(2, 0);
  CHECK(stream.at(0, 0).rows == first);
}

TEST_CASE("stroke rows: refusals") {
  const auto make = [](const std::vector<std::int64_t>& counts, const StrokeOptions& options,
                       std::int64_t batch) {
    return [=] { stroke_stream(counts, options, {.batch = batch}); };
  };
  test::check_refused(make({}, {}, 8), "[handwriting] made up: expected lines, got none");
  test::check_refused(make({5, 1}, {}, 8),
                      "[handwriting] made up: row 1: expected 2 points or more, got 1");
  test::check_refused(make({5}, {}, 0), "[handwriting] batch: expected 1 or more, got 0");
  test::check_refused(make({5}, {.multiple = 0}, 8), "[handwriting] batches: expected 1 or more");
  data::DataLoader stream = stroke_stream({5}, {}, {.batch = 8});
  const std::int64_t beyond[] = {1};
  test::check_refused([&] { stream.pick(beyond); }, "[batches] row: expected 0 to 0, got 1");
  test::check_refused([&] { stream.at(0, 1); }, "[batches] step: expected 0 to 0, got 1");
}

}  // namespace
}  // namespace keel::models
