// A strict reader of safetensors headers that keeps only the table, never a JSON tree, so that a
// hostile header cannot make it allocate much more than its own size.
#include "frontend/io/safetensors_table.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace keel::io {
namespace {

using nlohmann::json;

// Follows the JSON event by event. The place in the structure decides which event may come next,
// so nesting deeper than the format's three levels is refused where it begins.
class HeaderReader final : public json::json_sax_t {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}
  TensorTable take() { return std::move(table_); }

  bool null() override { refuse_value("null"); }
  bool boolean(bool) override { refuse_value("a boolean"); }
  bool binary(json::binary_t&) override { refuse_value("binary"); }
  bool number_integer(number_integer_t value) override { refuse_value(std::to_string(value)); }
  bool number_float(number_float_t, const std::string& text) override {
    refuse_value(text.substr(0, 40));
  }
  bool number_unsigned(number_unsigned_t value) override;
  bool string(std::string& text) override;
  bool start_object(std::size_t) override;
  bool key(std::string& name) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    refuse_file(path_, "header", "JSON in UTF-8", fmt::format("an error at byte {}", 7 + position));
  }

 private:
  enum class At { kStart, kTop, kMetadata, kTensor, kShape, kRange };
  // The fields of a tensor, as bits, to see that each comes exactly once.
  enum Field : unsigned { kDType = 1, kShape = 2, kRange = 4, kAllFields = 7, kUnknown = 8 };

  [[noreturn]] void refuse(std::string_view expected, std::string_view got) const {
    refuse_file(path_, where(), expected, got);
  }
  // Refuses a value of a kind that cannot stand here.
  [[noreturn]] void refuse_value(std::string_view got) const;
  std::string where() const;
  void begin_entry(std::string& name);
  void begin_field(std::string_view name);
  void finish_tensor();

  const std::string& path_;
  TensorTable table_;
  At at_ = At::kStart;
  bool metadata_seen_ = false;
  std::string name_;      // of the tensor or metadata entry being read
  unsigned fields_ = 0;   // seen so far of the tensor being read
  Field field_ = kDType;  // being read
  DType dtype_ = DType::kF32;
  std::vector<std::int64_t> sizes_, range_;
};

std::string HeaderReader::where() const {
  switch (at_) {
    case At::kStart:
      return "header";
    case At::kTop:
      return tensor_called(name_);
    case At::kMetadata:
      return "metadata " + shown_name(name_);
    default:
      break;
  }
  const char* field = field_ == kDType ? "dtype" : field_ == kShape ? "shape" : "data_offsets";
  return fmt::format("{}: {}", tensor_called(name_), field);
}

void HeaderReader::refuse_value(std::string_view got) const {
  switch (at_) {
    case At::kStart:
    case At::kTop:
      refuse("an object", got);
    case At::kMetadata:
      refuse("a string", got);
    case At::kTensor:
      refuse(field_ == kDType ? "a string" : "an array", got);
    case At::kShape:
    case At::kRange:
      refuse("a number from 0 to 2^63-1", got);
  }
  refuse("nothing", got);
}

bool HeaderReader::number_unsigned(number_unsigned_t value) {
  const bool in_list = at_ == At::kShape || at_ == At::kRange;
  if (!in_list || value > std::uint64_t(std::numeric_limits<std::int64_t>::max())) {
    refuse_value(std::to_string(value));
  }
  if (at_ == At::kShape && sizes_.size() == Shape::kMaxRank) {
    refuse(fmt::format("rank <= {}", Shape::kMaxRank), "more sizes");
  }
  if (at_ == At::kRange && range_.size() == 2) refuse("2 numbers", "more");
  (at_ == At::kShape ? sizes_ : range_).push_back(std::int64_t(value));
  return true;
}

bool HeaderReader::string(std::string& text) {
  if (at_ == At::kMetadata) {
    table_.metadata.emplace(name_, std::move(text));
    return true;
  }
  if (at_ != At::kTensor || field_ != kDType) refuse_value("a string");
  const auto* known = std::ranges::find(kDTypeNames, text, &DTypeName::second);
  if (known == kDTypeNames.end()) refuse("F32, F64, BF16, I32 or U8", shown_name(text));
  dtype_ = known->first;
  return true;
}

bool HeaderReader::start_object(std::size_t) {
  if (at_ == At::kStart) {
    at_ = At::kTop;
  } else if (at_ == At::kTop) {
    at_ = name_ == kMetadataName ? At::kMetadata : At::kTensor;
    fields_ = 0;
    sizes_.clear();
    range_.clear();
  } else {
    refuse_value("an object");
  }
  return true;
}

bool HeaderReader::key(std::string& name) {
  if (at_ == At::kTensor) {
    begin_field(name);
  } else {
    begin_entry(name);
  }
  return true;
}

void HeaderReader::begin_entry(std::string& name) {
  name_ = std::move(name);
  bool repeated = false;
  if (at_ == At::kMetadata) {
    repeated = table_.metadata.contains(name_);
  } else if (name_ == kMetadataName) {
    repeated = std::exchange(metadata_seen_, true);
  } else {
    repeated = table_.tensors.contains(name_);
  }
  if (repeated) refuse("each name once", "it again");
  if (table_.tensors.size() + table_.metadata.size() >= kMaxHeaderEntries) {
    refuse(fmt::format("at most {} entries", kMaxHeaderEntries), "more");
  }
}

void HeaderReader::begin_field(std::string_view name) {
  field_ = name == "dtype"          ? kDType
           : name == "shape"        ? kShape
           : name == "data_offsets" ? kRange
                                    : kUnknown;
  if (field_ == kUnknown || (fields_ & field_)) {
    refuse_file(path_, tensor_called(name_), "dtype, shape and data_offsets once each",
                (field_ == kUnknown ? "" : "a second ") + shown_name(name));
  }
  fields_ |= field_;
}

bool HeaderReader::start_array(std::size_t) {
  if (at_ != At::kTensor || field_ == kDType) refuse_value("an array");
  at_ = field_ == kShape ? At::kShape : At::kRange;
  return true;
}

bool HeaderReader::end_array() {
  if (at_ == At::kRange && range_.size() != 2) refuse("2 numbers", std::to_string(range_.size()));
  at_ = At::kTensor;
  return true;
}

bool HeaderReader::end_object() {
  if (at_ == At::kTensor) finish_tensor();
  at_ = At::kTop;
  return true;
}

void HeaderReader::finish_tensor() {
  const std::string_view fields = "dtype, shape and data_offsets";
  if (fields_ != kAllFields) refuse_file(path_, tensor_called(name_), fields, "only some of them");
  const TensorType type{dtype_, Shape(sizes_)};
  std::int64_t bytes = 0;
  try {
    bytes = type.bytes();
  } catch (const Error& overflow) {
    refuse_file(path_, tensor_called(name_), "a possible size", overflow.what());
  }
  const std::int64_t begin = range_[0], end = range_[1];
  if (end - begin != bytes) {
    refuse_file(path_, tensor_called(name_) + ": data_offsets",
                fmt::format("{} bytes for {}", bytes, type.text()),
                fmt::format("[{}, {}]", begin, end));
  }
  table_.tensors.emplace(name_, TensorEntry{type, begin, end, {}});
}

}  // namespace

TensorTable read_table(std::string_view text, const std::string& path) {
  HeaderReader reader(path);
  json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

void refuse_file(const std::string& path, std::string_view where, std::string_view expected,
                 std::string_view got) {
  fail(ErrorKind::kBadInput, "[safetensors] {}: {}: expected {}, got {}", path, where, expected,
       got);
}

std::string tensor_called(std::string_view name) { return "tensor " + shown_name(name); }

}  // namespace keel::io
