#include "frontend/data/csv_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "frontend/io/packed_file.h"
#include "frontend/text/csv.h"

namespace keel::data {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{4} << 30;
constexpr std::int64_t kPeriod = 10, kValid = 8, kTest = 9;  // of the row's number

using text::CsvRecord;

std::optional<float> number_of(const std::string& field) {
  float value = 0;
  const char* end = field.data() + field.size();
  const auto [stop, problem] = std::from_chars(field.data(), end, value);
  if (problem != std::errc{} || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

class Reader {
 public:
  Reader(const CsvTable& table, std::string name) : table_(table), name_(std::move(name)) {}

  // Appends the numbers of a row, and its class if it has one.
  void add(const CsvRecord& row, bool needs_class) {
    const auto width = std::size_t(table_.width);
    const bool has_class = row.fields.size() == width + 1;
    expect(has_class || (!needs_class && row.fields.size() == width), row,
           fmt::format("{} numbers and a class", width),
           fmt::format("{} fields", row.fields.size()));
    for (std::size_t i = 0; i < width; ++i) {
      const auto number = number_of(row.fields[i]);
      expect(number.has_value(), row, "a finite number", fmt::format("'{}'", row.fields[i]));
      x_.push_back(*number);
    }
    labels_.push_back(needs_class ? label_of(row) : 0);
  }

  TensorDataset finish(const std::string& source) {
    const std::int64_t rows = std::ssize(labels_);
    TensorDataset dataset(source);
    dataset.add("x", Tensor::of<float>({rows, table_.width}, x_));
    dataset.add("label", Tensor::of<std::int32_t>({rows}, labels_));
    return dataset;
  }

 private:
  std::int32_t label_of(const CsvRecord& row) const {
    const auto found = std::ranges::find(table_.classes, row.fields.back());
    expect(found != table_.classes.end(), row,
           fmt::format("one of the classes {}", fmt::join(table_.classes, ", ")),
           fmt::format("'{}'", row.fields.back()));
    return std::int32_t(found - table_.classes.begin());
  }
  void expect(bool holds, const CsvRecord& row, const std::string& expected,
              const std::string& got) const {
    check(holds, ErrorKind::kBadInput, "[csv] {}: line {}: expected {}, got {}", name_, row.line,
          expected, got);
  }

  const CsvTable& table_;
  std::string name_;
  std::vector<float> x_;
  std::vector<std::int32_t> labels_;
};

// The rows whose number within ten lies between the two.
TensorDataset part_of(const TensorDataset& all, std::int64_t least, std::int64_t most,
                      std::string_view part) {
  const Tensor &x = all.column("x"), &labels = all.column("label");
  const auto width = std::size_t(x.shape()[1]);
  std::vector<float> some;
  std::vector<std::int32_t> classes;
  for (std::int64_t row = 0; row < all.rows(); ++row) {
    if (row % kPeriod < least || row % kPeriod > most) continue;
    const auto numbers = x.as<float>().subspan(std::size_t(row) * width, width);
    some.insert(some.end(), numbers.begin(), numbers.end());
    classes.push_back(labels.as<std::int32_t>()[std::size_t(row)]);
  }
  const std::int64_t rows = std::ssize(classes);
  TensorDataset dataset(fmt::format("{}, {}", all.source(), part));
  dataset.add("x", Tensor::of<float>({rows, x.shape()[1]}, some));
  dataset.add("label", Tensor::of<std::int32_t>({rows}, classes));
  return dataset;
}

}  // namespace

std::vector<TableColumn> CsvTable::columns() const {
  return {{"x", DType::kF32, {width}}, {"label", DType::kI32}};
}

TensorDataset CsvTable::read(std::string_view csv, const std::string& name) const {
  Reader rows(*this, name);
  text::CsvReader records(csv, name);
  for (auto record = records.next(); record; record = records.next()) {
    // Only names count: a row in which one number is damaged is not a heading.
    const bool is_heading = record->line == 1 && std::ranges::none_of(record->fields, [](auto& f) {
                              return number_of(f).has_value();
                            });
    if (!is_heading) rows.add(*record, true);
  }
  return rows.finish(name);
}

TensorDataset CsvTable::read_lines(std::span<const std::string> lines, std::int64_t first) const {
  Reader rows(*this, "standard input");
  for (const std::string& line : lines) {
    auto record = text::CsvReader(line, "standard input").next();
    rows.add({record ? record->fields : std::vector<std::string>{""}, first++}, false);
  }
  return rows.finish("lines");
}

std::unique_ptr<Splits> CsvTable::splits(std::string_view csv, const std::string& name,
                                         std::int64_t train_rows) const {
  const auto all = std::make_shared<const TensorDataset>(read(csv, name));
  check(all->rows() >= kPeriod, ErrorKind::kBadInput, "{}: expected at least {} rows, got {}", name,
        kPeriod, all->rows());
  const auto train = [=] {
    TensorDataset rows = part_of(*all, 0, kValid - 1, "train");
    return train_rows == 0 ? std::move(rows) : rows.take(std::min(train_rows, rows.rows()));
  };
  return std::make_unique<TableSplits>(
      columns(), train, [=] { return part_of(*all, kValid, kValid, "valid"); },
      [=] { return part_of(*all, kTest, kTest, "test"); });
}

std::unique_ptr<Splits> CsvTable::splits_of_file(const std::string& path,
                                                 std::int64_t train_rows) const {
  return splits(io::read_file(path, kMaxBytes), path, train_rows);
}

}  // namespace keel::data
