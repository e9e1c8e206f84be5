// Comma-separated values.
#include "frontend/text/csv.h"

#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

using test::refuses;
using Records = std::vector<std::vector<std::string>>;

Records records_of(std::string_view text) {
  Records records;
  CsvReader reader(text, "x.csv");
  while (auto record = reader.next()) records.push_back(std::move(record->fields));
  return records;
}

TEST_CASE("csv: fields, ends of lines, empty fields") {
  CHECK(records_of("") == Records{});
  CHECK(records_of("a,b\nc,d\n") == Records{{"a", "b"}, {"c", "d"}});
  CHECK(records_of("a,b\r\nc,d") == Records{{"a", "b"}, {"c", "d"}});
  CHECK(records_of("a,\r\n,b\r\n\n,") == Records{{"a", ""}, {"", "b"}, {""}, {"", ""}});
  CHECK(records_of(" a , b ") == Records{{" a ", " b "}});
}

TEST_CASE("csv: a field in quotes holds commas, quotes and ends of lines") {
  CHECK(records_of("\"a,b\",c\n\"\",\"\"\"\"\n") == Records{{"a,b", "c"}, {"", "\""}});
  CHECK(records_of("\"say \"\"hi\"\"\"\n") == Records{{"say \"hi\""}});
  CHECK(records_of("\"two\nlines\r\nmore\"\r\nx") == Records{{"two\nlines\r\nmore"}, {"x"}});
}

TEST_CASE("csv: a record knows the line on which it begins") {
  CsvReader reader("a\n\"b\nb\",\"\n\"\nc\n", "x.csv");
  CHECK(reader.next()->line == 1);
  CHECK(reader.next()->line == 2);
  CHECK(reader.next()->line == 5);
  CHECK_FALSE(reader.next().has_value());
}

TEST_CASE("csv: refusals") {
  const auto refused = [](std::string_view text, std::string_view expected) {
    return refuses(ErrorKind::kBadInput, expected, [&] { records_of(text); });
  };
  CHECK(refused("a\nb,\"c\n\nd\n",
                "[csv] x.csv: line 2: expected a quote that closes the field, got the end"));
  CHECK(refused("a\n\"b\"c,d\n",
                "line 2: expected a comma or the end of the line after a closing "
                "quote, got 'c,d'"));
  CHECK(refused("a\n\"b\"\r", "line 2: expected a comma or the end of the line"));
  CHECK(refused("x,5\" pipe\n",
                "line 1: expected a field with a quote in it to stand in quotes, "
                "got '5\"'"));
}

}  // namespace
}  // namespace keel::text
