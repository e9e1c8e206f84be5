// Checks of a header besides its table: ranges that cover the data, and checksums.
#include "frontend/io/safetensors_header.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "frontend/io/safetensors_table.h"

namespace keel::io {
namespace {

// Every byte of the data belongs to exactly one tensor.
void check_ranges(const TensorTable& table, std::int64_t data_bytes, const std::string& path) {
  using Named = std::pair<const std::string, TensorEntry>;
  std::vector<const Named*> order;
  for (const Named& named : table.tensors) order.push_back(&named);
  // A tensor without bytes shares its begin with the next one, and comes before it.
  std::ranges::sort(order, {}, [](const Named* named) {
    return std::pair(named->second.begin, named->second.end);
  });
  std::int64_t end = 0;
  for (const auto* named : order) {
    const auto& [name, entry] = *named;
    if (entry.begin != end) {
      refuse_file(path, tensor_called(name) + ": data_offsets", fmt::format("begin {}", end),
                  std::to_string(entry.begin));
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    refuse_file(path, "data", fmt::format("{} bytes, as the header says", end),
                std::to_string(data_bytes));
  }
}

void verify_header(std::string_view text, const std::string& stored, const std::string& path) {
  if (!text.starts_with(kSealedOpening) || stored.size() != kZeroChecksum.size()) {
    refuse_file(path, "header", "to begin with its checksum of 8 digits", shown_name(stored));
  }
  const std::size_t end = kSealedOpening.size() + kZeroChecksum.size();
  const std::string computed = checksum({kSealedOpening, kZeroChecksum, text.substr(end)});
  if (stored != computed) {
    refuse_file(path, "header", "checksum " + shown_name(stored), computed);
  }
}

// Moves the checksums of the tensors from the metadata to their entries.
void take_tensor_checksums(TensorTable& table, const std::string& path) {
  for (auto& [name, entry] : table.tensors) {
    const auto node = table.metadata.extract(std::string(kTensorChecksumPrefix) + name);
    if (node.empty() == table.has_checksums) {
      refuse_file(path, tensor_called(name), "checksums of all tensors and the header or none",
                  "only some of them");
    }
    if (!node.empty()) entry.checksum = node.mapped();
  }
}

}  // namespace

TensorTable parse_header(std::string_view text, std::int64_t data_bytes, const std::string& path) {
  if (!text.starts_with('{')) {
    refuse_file(path, "header", "'{' at byte 8", shown_name(text.substr(0, 1)));
  }
  // The JSON library takes a zero byte for the end of its input and would not see what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    refuse_file(path, "header", "JSON in UTF-8", fmt::format("a zero at byte {}", 8 + zero));
  }
  TensorTable table = read_table(text, path);
  check_ranges(table, data_bytes, path);
  if (const auto node = table.metadata.extract(std::string(kHeaderChecksumKey))) {
    verify_header(text, node.mapped(), path);
    table.has_checksums = true;
  }
  take_tensor_checksums(table, path);
  return table;
}

std::string checksum(std::initializer_list<std::string_view> parts) {
  uLong crc = 0;
  for (std::string_view part : parts) {
    crc = ::crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  return fmt::format("{:08x}", crc);
}

std::string shown_name(std::string_view name) {
  constexpr std::size_t kShown = 80;
  return fmt::format("{:?}{}", name.substr(0, kShown), name.size() > kShown ? "..." : "");
}

}  // namespace keel::io
