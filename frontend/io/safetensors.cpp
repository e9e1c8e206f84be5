// Writing and reading of safetensors files; the header's own rules are in safetensors_header.cpp.
#include "frontend/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "frontend/io/atomic_file.h"
#include "frontend/io/input_file.h"
#include "frontend/io/safetensors_header.h"

namespace keel::io {
namespace {

namespace fs = std::filesystem;
using NamedTensor = std::map<std::string, Tensor>::value_type;

constexpr std::int64_t kLengthBytes = 8;
static_assert(std::endian::native == std::endian::little, "the format is little-endian");

std::string_view bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), std::size_t(tensor.bytes())};
}

// Tensors in the order of their data. PyTorch, among others, needs each aligned to its elements.
std::vector<const NamedTensor*> data_order(const TensorFile& file, IsWritten is_written) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& named : file.tensors) {
    if (is_written(named.first)) order.push_back(&named);
  }
  std::ranges::stable_sort(order, std::greater{},
                           [](const NamedTensor* named) { return size_of(named->second.dtype()); });
  return order;
}

std::string json_string(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::kUsage, "[safetensors] name or metadata: expected UTF-8, got {}",
         shown_name(text));
  }
}

std::string format_metadata(const TensorFile& file, IsWritten is_written) {
  std::string text = fmt::format("{}{}\"", kSealedOpening, kZeroChecksum);
  for (const auto& [key, value] : file.metadata) {
    check(key != kHeaderChecksumKey && !key.starts_with(kTensorChecksumPrefix), ErrorKind::kUsage,
          "[safetensors] metadata {}: expected another key, this one is reserved for checksums",
          shown_name(key));
    text += fmt::format(",{}:{}", json_string(key), json_string(value));
  }
  for (const auto& [name, tensor] : file.tensors) {
    if (!is_written(name)) continue;
    text += fmt::format(",{}:\"{}\"", json_string(std::string(kTensorChecksumPrefix) + name),
                        checksum({bytes_of(tensor)}));
  }
  return text + "}";
}

std::string format_tensor(const NamedTensor& named, std::int64_t begin) {
  const auto& [name, tensor] = named;
  check(name != kMetadataName, ErrorKind::kUsage,
        "[safetensors] tensor: expected a name other than the format's own {}", kMetadataName);
  const auto* dtype = std::ranges::find(kDTypeNames, tensor.dtype(), &DTypeName::first);
  return fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                     json_string(name), dtype->second, fmt::join(tensor.shape().sizes(), ","),
                     begin, begin + tensor.bytes());
}

std::string format_header(const TensorFile& file, IsWritten is_written,
                          const std::vector<const NamedTensor*>& order) {
  const std::size_t entries = 2 * order.size() + file.metadata.size() + 1;
  check(entries <= kMaxHeaderEntries, ErrorKind::kUsage,
        "[safetensors] header: expected at most {} entries, got {}", kMaxHeaderEntries, entries);
  std::map<std::string_view, std::string> tensors;
  std::int64_t begin = 0;
  for (const NamedTensor* named : order) {
    tensors[named->first] = format_tensor(*named, begin);
    begin += named->second.bytes();
  }
  std::string header = format_metadata(file, is_written);
  for (const auto& [name, text] : tensors) header += text;
  header += '}';
  header.append((kAlignment - (kLengthBytes + header.size()) % kAlignment) % kAlignment, ' ');
  check(std::ssize(header) <= kMaxHeaderBytes, ErrorKind::kUsage,
        "[safetensors] header: expected at most {} bytes, got {}", kMaxHeaderBytes, header.size());
  return header.replace(kSealedOpening.size(), kZeroChecksum.size(), checksum({header}));
}

struct OpenTable {
  TensorTable table;
  std::int64_t data_begin = 0;
};

OpenTable read_table(InputFile& file, const SafetensorsOptions& options) {
  check(file.size() >= kLengthBytes, ErrorKind::kBadInput,
        "[safetensors] {}: expected at least {} bytes, got {}", file.path(), kLengthBytes,
        file.size());
  std::uint64_t length = 0;
  file.read(0, &length, kLengthBytes);
  const std::int64_t limit = std::min(kMaxHeaderBytes, file.size() - kLengthBytes);
  check(length <= std::uint64_t(limit), ErrorKind::kBadInput,
        "[safetensors] {}: header length: expected at most {}, got {}", file.path(), limit, length);
  std::string header(length, '\0');
  file.read(kLengthBytes, header.data(), std::ssize(header));
  const std::int64_t data_begin = kLengthBytes + std::ssize(header);
  TensorTable table = parse_header(header, file.size() - data_begin, file.path());
  check(table.has_checksums || !options.require_checksums, ErrorKind::kBadInput,
        "[safetensors] {}: expected checksums, got none", file.path());
  return {std::move(table), data_begin};
}

// With its checksum verified, if it has one.
Tensor read_tensor(InputFile& in, const OpenTable& open, const std::string& name) {
  const TensorEntry& entry = open.table.tensors.at(name);
  Tensor tensor(entry.type);
  in.read(open.data_begin + entry.begin, tensor.data(), tensor.bytes());
  const std::string computed = open.table.has_checksums ? checksum({bytes_of(tensor)}) : "";
  check(computed == entry.checksum, ErrorKind::kBadInput,
        "[safetensors] {}: tensor {}: expected checksum {}, got {}", in.path(), shown_name(name),
        shown_name(entry.checksum), computed);
  return tensor;
}

}  // namespace

void write_safetensors(const fs::path& path, const TensorFile& file, IsWritten is_written) {
  const std::vector<const NamedTensor*> order = data_order(file, is_written);
  const std::string header = format_header(file, is_written, order);
  const std::uint64_t length = header.size();
  AtomicFile out(path);
  out.write({reinterpret_cast<const char*>(&length), std::size_t(kLengthBytes)});
  out.write(header);
  for (const NamedTensor* named : order) out.write(bytes_of(named->second));
  out.commit();
}

TensorFile read_safetensors(const fs::path& path, const SafetensorsOptions& options) {
  InputFile in(path);
  OpenTable open = read_table(in, options);
  TensorFile file;
  file.metadata = std::move(open.table.metadata);
  for (const auto& [name, entry] : open.table.tensors) {
    file.tensors.emplace(name, read_tensor(in, open, name));
  }
  return file;
}

void verify_safetensors(const fs::path& path, const SafetensorsOptions& options) {
  InputFile in(path);
  const OpenTable open = read_table(in, options);
  if (!open.table.has_checksums) return;
  for (const auto& [name, entry] : open.table.tensors) read_tensor(in, open, name);
}

TensorFileInfo read_safetensors_info(const fs::path& path, const SafetensorsOptions& options) {
  InputFile in(path);
  TensorTable table = read_table(in, options).table;
  TensorFileInfo info{{}, std::move(table.metadata), table.has_checksums};
  for (const auto& [name, entry] : table.tensors) info.tensors.emplace(name, entry.type);
  return info;
}

}  // namespace keel::io
