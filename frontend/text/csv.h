// Comma-separated values according to RFC 4180.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keel::text {

struct CsvRecord {
  std::vector<std::string> fields;  // at least one, which may be empty
  std::int64_t line = 0;            // the line that the record begins on, from 1
};

// Reads the records of a text one by one. Commas separate fields, a record ends in LF or CR LF, and
// the end of the last one is optional. A field in quotes may hold commas, ends of lines, and
// quotes, each written twice. Holds a view of `content`; messages call it `name`.
class CsvReader {
 public:
  CsvReader(std::string_view content, std::string name)
      : content_(content), name_(std::move(name)) {}

  // The next record, or nothing. Throws Error{kBadInput}, "[csv] NAME: line N: expected X, got Y",
  // for a quote that is never closed, for text between a closing quote and the next comma, and for
  // a quote within a field that is not in quotes.
  std::optional<CsvRecord> next();

 private:
  std::string field();
  std::string bare_field();
  std::string quoted_field();
  void end_record();

  std::string_view content_;
  std::string name_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace keel::text
