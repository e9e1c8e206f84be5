// Tables as comma-separated values: rows, headings, splits, and every refusal.
#include "frontend/data/csv_table.h"

#include <doctest/doctest.h>

#include "tests/support/checks.h"

namespace keel::data {
namespace {

const CsvTable kTable{.width = 2, .classes = {"red", "blue"}};

std::vector<float> numbers(const TensorDataset& table) {
  const auto x = table.column("x").as<float>();
  return {x.begin(), x.end()};
}

std::vector<std::int32_t> labels(const TensorDataset& table) {
  const auto all = table.column("label").as<std::int32_t>();
  return {all.begin(), all.end()};
}

std::string numbered_csv(int rows) {
  std::string csv;
  for (int i = 0; i < rows; ++i) csv += fmt::format("{},0,{}\n", i, i % 2 == 0 ? "red" : "blue");
  return csv;
}

std::vector<float> first_numbers(const Splits& splits, Split split) {
  const auto stream = splits.stream(split, {.batch = 100, .shuffle = {}});
  const Tensor& x = stream->at(0, 0).values[0];
  std::vector<float> firsts;
  for (std::int64_t row = 0; row < stream->rows(); ++row) firsts.push_back(float(x.at(2 * row)));
  return firsts;
}

TEST_CASE("csv table: rows are numbers and a class, with a heading or without") {
  for (const char* heading : {"", "width,height,colour\n"}) {
    const TensorDataset table = kTable.read(heading + std::string("1,2.5,blue\n-3e2,0,red\n"), "t");
    CHECK(numbers(table) == std::vector<float>{1, 2.5f, -300, 0});
    CHECK(labels(table) == std::vector<std::int32_t>{1, 0});
  }
}

TEST_CASE("csv table: a user's lines need no class, and one that is there is ignored") {
  const std::vector<std::string> lines{"1,2", "3,4,red", "5,6,green"};
  const TensorDataset table = kTable.read_lines(lines, 1);
  CHECK(numbers(table) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(labels(table) == std::vector<std::int32_t>{0, 0, 0});
  CHECK(kTable.read_lines({}, 1).rows() == 0);
}

TEST_CASE("csv table: of ten rows the ninth validates and the tenth tests") {
  const auto splits = kTable.splits(numbered_csv(21), "t");
  CHECK(first_numbers(*splits, Split::kTrain) ==
        std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17, 20});
  CHECK(first_numbers(*splits, Split::kValid) == std::vector<float>{8, 18});
  CHECK(first_numbers(*splits, Split::kTest) == std::vector<float>{9, 19});
  CHECK(first_numbers(*kTable.splits(numbered_csv(21), "t", 3), Split::kTrain) ==
        std::vector<float>{0, 1, 2});
}

TEST_CASE("csv table: other rows are refused with their line") {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"1,2,red\n1,red\n", "[csv] t: line 2: expected 2 numbers and a class, got 2 fields"},
      {"1,2,red\n1,2,3,red\n", "[csv] t: line 2: expected 2 numbers and a class, got 4 fields"},
      {"1,2,red\n1,x,red\n", "[csv] t: line 2: expected a finite number, got 'x'"},
      {"1,2,red\n1,inf,red\n", "[csv] t: line 2: expected a finite number, got 'inf'"},
      {"nan,2,red\n1,2,red\n", "[csv] t: line 1: expected a finite number, got 'nan'"},
      {"1,2,red\n1,2,green\n",
       "[csv] t: line 2: expected one of the classes red, blue, got 'green'"},
  };
  for (const auto& [csv, text] : refused) {
    test::check_refused([&] { kTable.read(csv, "t"); }, text, "", ErrorKind::kBadInput);
  }
  test::check_refused([&] { kTable.splits(numbered_csv(9), "t"); },
                      "t: expected at least 10 rows, got 9", "", ErrorKind::kBadInput);
  const std::vector<std::string> lines{"1,2", ""};
  test::check_refused([&] { kTable.read_lines(lines, 5); }, "[csv] standard input: line 6: ",
                      "expected 2 numbers and a class, got 1 fields", ErrorKind::kBadInput);
}

}  // namespace
}  // namespace keel::data
