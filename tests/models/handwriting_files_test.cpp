// Lines of IAM-OnDB in a table: what is read, what is left out, and what is refused.
#include <doctest/doctest.h>

#include <cmath>

#include "models/handwriting/files.h"
#include "models/handwriting/model.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

using test::write_bytes;

// A row of `count` points; the pen goes to and fro, and once as far as `jump`.
std::string iam_row(const std::string& id, int count, int jump = 0) {
  std::string row = fmt::format("{}\tHallo {}\t{}\t500 700 0", id, id, count);
  for (int i = 1; i < count; ++i) {
    const int dx = i == 5 && jump != 0 ? jump : 3 * (i % 7) - 9;
    row += fmt::format(",{} {} {}", dx, i % 5 - 2, i + 1 == count ? 1 : 0);
  }
  return row + "\n";
}

// Forty texts of two lines each.
std::string iam_table() {
  std::string table;
  for (int text = 0; text < 40; ++text) {
    for (int line = 0; line < 2; ++line) {
      table += iam_row(fmt::format("a{:02}-{:03}u-{:02}", text, text, line), 100 + text + line);
    }
  }
  return table;
}

HandwritingCorpus read_table(const std::string& table) {
  const test::TempDir temp;
  write_bytes(temp / "iamondb-lines.tsv", table);
  return read_iam(temp.path());
}

TEST_CASE("iam lines: a row is a text and points, y upwards, where it begins left out") {
  const IamLine row = parse_iam_row("a01-000u-01\tA b\t3\t1073 1058 0,-1 27 0,5 -32 1",
                                    Alphabet::of_letters(), "here");
  CHECK(row.form == "a01-000u-01");
  CHECK(row.line.text == std::vector<std::int32_t>{0, 52, 27});
  REQUIRE(row.line.points.size() == 3);
  CHECK(row.line.points[0].dx == 0);
  CHECK(row.line.points[0].dy == 0);
  CHECK(row.line.points[1].dx == -1);
  CHECK(row.line.points[1].dy == -27);
  CHECK(row.line.points[2].dy == 32);
  CHECK(!row.line.points[1].lifts);
  CHECK(row.line.points[2].lifts);
}

TEST_CASE("iam lines: a row that is damaged is refused with what was expected") {
  const auto refused = [](const char* row, const char* message) {
    CAPTURE(row);
    test::check_refused([&] { parse_iam_row(row, Alphabet::of_letters(), "f: line 7"); },
                        fmt::format("f: line 7: {}", message), "", ErrorKind::kBadInput);
  };
  refused("a01-000u-01\tA\t2",
          "expected 4 fields with tabs between, id, text, count and points, got 3");
  refused("a01-000u-01\tA\tB\t2\t0 0 0,1 1 1", "expected 4 fields");
  refused("", "expected 4 fields with tabs between, id, text, count and points, got 1");
  refused("a01\tA\t2\t0 0 0,1 1 1", "expected an id of 7 characters or more, got 'a01'");
  refused("a01-000u\t\t2\t0 0 0,1 1 1", "expected a text, got an empty one");
  refused("a01-000u\tA\x02\t2\t0 0 0,1 1 1", "expected a text without control characters");
  refused("a01-000u\tA\t3\t0 0 0,1 1 1", "expected 3 points, 2 or more, got 2");
  refused("a01-000u\tA\tx\t0 0 0,1 1 1", "expected x points, 2 or more, got 2");
  refused("a01-000u\tA\t1\t0 0 1", "expected 1 points, 2 or more, got 1");
  refused("a01-000u\tA\t0\t", "expected 0 points, 2 or more, got 0");
  for (const char* point :
       {"1 1", "1 1 2", "1 x 0", "1.5 1 0", "1 1 0 0", "", "1  1 0", "99999999 1 0",
        "-9223372036854775808 1 0", "99999999999999999999 1 0", "nan 1 0"}) {
    CAPTURE(point);
    const std::string row = fmt::format("a01-000u\tA\t3\t0 0 0,{},1 1 1", point);
    test::check_refused(
        [&] { parse_iam_row(row, Alphabet::of_letters(), "f: line 7"); },
        fmt::format("f: line 7: point 2: expected 'dx dy e', whole numbers up to 16777216 and 0 or "
                    "1, got '{}'",
                    point),
        "", ErrorKind::kBadInput);
  }
}

TEST_CASE("iam lines: a text is in one part only, a tenth of them in each of two") {
  const HandwritingCorpus corpus = read_table(iam_table());
  CHECK(corpus.train.size() == 64);
  CHECK(corpus.valid.size() == 8);
  CHECK(corpus.test().size() == 8);
  // Both lines of a text have its number, so that they are seen by their lengths 100 + t, 101 + t.
  const WrittenLines test = corpus.test();
  for (const WrittenLines* part : {&corpus.valid, &test}) {
    for (std::size_t i = 0; i < part->size(); i += 2) {
      CHECK((*part)[i].points.size() + 1 == (*part)[i + 1].points.size());
    }
  }
  const HandwritingCorpus again = read_table(iam_table());
  CHECK(again.valid[0].points.size() == corpus.valid[0].points.size());
}

TEST_CASE("iam lines: short lines and jumps are left out and counted") {
  const std::string more =
      iam_row("b00-000u-01", 99) + iam_row("b00-000u-02", 150, 20000) + iam_row("b00-000u-03", 150);
  const HandwritingCorpus corpus = read_table(iam_table() + more);
  CHECK(corpus.train.size() + corpus.valid.size() + corpus.test().size() == 81);
  CHECK(corpus.origin.ends_with("iamondb-lines.tsv, 2 of 83 lines left out"));
}

TEST_CASE("iam lines: packed files, and those in the folder handwriting, are found") {
  const test::TempDir temp;
  test::check_refused([&] { read_iam(temp.path()); }, "[handwriting] ",
                      "expected iamondb-lines.tsv, plain, .gz or .xz", ErrorKind::kIo);
  std::filesystem::create_directory(temp.path() / "handwriting");
  write_bytes(temp.path() / "handwriting" / "iamondb-lines.tsv", iam_table());
  CHECK(read_iam(temp.path()).train.size() == 64);
}

TEST_CASE("iam lines: errors name file and line") {
  const test::TempDir temp;
  const auto refused = [&](const std::string& table, const std::string& what) {
    write_bytes(temp / "iamondb-lines.tsv", table);
    test::check_refused(
        [&] { read_iam(temp.path()); },
        fmt::format("[handwriting] {}", (temp.path() / "iamondb-lines.tsv").string()), what,
        ErrorKind::kBadInput);
  };
  refused(iam_row("a00-000u-01", 120) + "b01-000u\tA\t2\t0 0 0,1 z 1\n",
          ": line 2: point 2: expected 'dx dy e'");
  refused(iam_row("a00-000u-01", 120), ": expected lines of 10 texts or more, got 1");
  std::string shorts;
  for (int i = 0; i < 12; ++i) shorts += iam_row(fmt::format("a{:02}-000u-01", i), 50);
  refused(shorts, ": expected lines of 100 points or more for training, validation and testing");
}

TEST_CASE("iam lines: the scale is that of the training lines, and a checkpoint's holds") {
  const test::TempDir temp;
  write_bytes(temp / "iamondb-lines.tsv", iam_table());
  const task::DataRequest request{.source = temp.path().string()};
  const task::Prepared own = Handwriting().prepare(request, nullptr);
  HandwritingFacts facts = dynamic_cast<const HandwritingNetwork&>(*own.network).facts();
  CHECK(facts.scale.deviation_x > 5);
  CHECK(facts.alphabet.size() == 57);
  facts.scale.deviation_x = 1000;
  const task::Assets known = facts.assets();
  const task::Prepared other = Handwriting().prepare(request, &known);
  CHECK(dynamic_cast<const HandwritingNetwork&>(*other.network).facts().scale.deviation_x == 1000);
  const std::vector<std::int64_t> first{0};
  const auto x_of = [&](const task::Prepared& of) {
    return of.splits->stream(task::Split::kTrain, {.batch = 1})->pick(first).values[0].at(3);
  };
  CHECK(std::abs(x_of(other)) < std::abs(x_of(own)));  // the second point of the first line
  test::check_refused([&] { Handwriting().prepare({}, &known); },
                      "[handwriting] built-in glyph strokes: expected data of the alphabet", "",
                      ErrorKind::kBadInput);
}

}  // namespace
}  // namespace keel::models
