// Tables of numbers with a class at the end of each row, as comma-separated values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/data/table_rows.h"

namespace keel::data {

// A row is `width` finite numbers and the name of a class; a file may begin with a row of names,
// none of which is a number.
struct CsvTable {
  std::int64_t width = 1;
  std::vector<std::string> classes;  // their numbers are their places here

  // Inputs "x" f32 (rows, width) and "label" i32 (rows).
  std::vector<TableColumn> columns() const;
  // The rows of a text, which messages call `name`. Throws Error{kBadInput}, "[csv] NAME: line N:
  // expected X, got Y", for a row of another form.
  TensorDataset read(std::string_view csv, const std::string& name) const;
  // The same for a user's lines, whose class may be missing and is ignored; `first` is the number
  // of the first of them.
  TensorDataset read_lines(std::span<const std::string> lines, std::int64_t first) const;
  // Gives the ninth of every ten rows to validation, the tenth to the test and the others to
  // training, which takes at most `train_rows`; 0: all. Throws as read(), and Error{kBadInput} for
  // fewer than ten rows.
  std::unique_ptr<Splits> splits(std::string_view csv, const std::string& name,
                                 std::int64_t train_rows = 0) const;
  // The same for a file, which may be packed. Throws as io::read_file, too.
  std::unique_ptr<Splits> splits_of_file(const std::string& path,
                                         std::int64_t train_rows = 0) const;
};

}  // namespace keel::data
