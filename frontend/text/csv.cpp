#include "frontend/text/csv.h"

#include <algorithm>

#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::text {

std::optional<CsvRecord> CsvReader::next() {
  if (at_ == content_.size()) return std::nullopt;
  CsvRecord record{{}, line_};
  record.fields.push_back(field());
  while (at_ < content_.size() && content_[at_] == ',') {
    ++at_;
    record.fields.push_back(field());
  }
  end_record();
  return record;
}

std::string CsvReader::field() {
  return content_.substr(at_).starts_with('"') ? quoted_field() : bare_field();
}

std::string CsvReader::bare_field() {
  const std::size_t end = std::min(content_.find_first_of(",\n\"", at_), content_.size());
  std::string_view field = content_.substr(at_, end - at_);
  const char stop = end < content_.size() ? content_[end] : '\n';
  check(stop != '"', ErrorKind::kBadInput,
        "[csv] {}: expected a field with a quote in it to stand in quotes, got '{}'",
        place(name_, line_), clipped(content_.substr(at_, end + 1 - at_), 60));
  if (stop == '\n' && field.ends_with('\r')) field.remove_suffix(1);
  at_ = end;
  return std::string(field);
}

std::string CsvReader::quoted_field() {
  const std::int64_t first_line = line_;
  std::string field;
  for (++at_;; ++at_) {
    const std::size_t end = content_.find('"', at_);
    check(end != content_.npos, ErrorKind::kBadInput,
          "[csv] {}: expected a quote that closes the field, got the end of the file",
          place(name_, first_line));
    const std::string_view part = content_.substr(at_, end - at_);
    field += part;
    line_ += std::ranges::count(part, '\n');
    at_ = end + 1;
    if (!content_.substr(at_).starts_with('"')) return field;
    field += '"';  // written twice
  }
}

void CsvReader::end_record() {
  const std::string_view rest = content_.substr(at_);
  const std::size_t end = rest.starts_with("\r\n") ? 2 : rest.starts_with('\n') ? 1 : 0;
  check(rest.empty() || end > 0, ErrorKind::kBadInput,
        "[csv] {}: expected a comma or the end of the line after a closing quote, got '{}'",
        place(name_, line_), clipped(rest.substr(0, rest.find('\n')), 60));
  at_ += end;
  ++line_;
}

}  // namespace keel::text
