// The JSON header of a safetensors file: the table of its tensors and its metadata.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "src/core/tensor.h"

namespace keel::io {

// Limits on a header: bytes, and entries (tensors and metadata together).
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;
inline constexpr std::size_t kMaxHeaderEntries = std::size_t{1} << 18;

inline constexpr std::string_view kMetadataName = "__metadata__";

// keel's files have checksums in their metadata: one for each tensor's bytes, under this prefix and
// the tensor's name, and one for the header. A header with a checksum begins with these bytes; the
// eight digits and `"` follow. Its checksum covers the padding, and counts its own digits as zeros.
inline constexpr std::string_view kTensorChecksumPrefix = "keel.crc32:";
inline constexpr std::string_view kHeaderChecksumKey = "keel.header_crc32";
inline constexpr std::string_view kSealedOpening = R"({"__metadata__":{"keel.header_crc32":")";
inline constexpr std::string_view kZeroChecksum = "00000000";

// The format's names of keel's element types.
using DTypeName = std::pair<DType, std::string_view>;
inline constexpr std::array<DTypeName, 5> kDTypeNames{{{DType::kF32, "F32"},
                                                       {DType::kF64, "F64"},
                                                       {DType::kBF16, "BF16"},
                                                       {DType::kI32, "I32"},
                                                       {DType::kU8, "U8"}}};

struct TensorEntry {
  TensorType type;
  std::int64_t begin = 0, end = 0;  // bytes, counted from the end of the header
  std::string checksum;             // empty when the table has no checksums
};

struct TensorTable {
  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, std::string> metadata;  // without the checksums
  bool has_checksums = false;                   // of the header and of every tensor
};

// Parses the header `text` of the file `path`, which has `data_bytes` bytes after it. Trusts
// nothing: it must be UTF-8 JSON of exactly the format's structure, no name or field twice, known
// element types, rank <= Shape::kMaxRank, sizes that do not overflow, and ranges that fit their
// types and follow one another without gaps from 0 to data_bytes. Checksums must be all there or
// none; that of the header is verified. Throws Error{kBadInput}.
TensorTable parse_header(std::string_view text, std::int64_t data_bytes, const std::string& path);

// CRC-32, as in zlib, of the parts one after another, as eight lower-case hex digits.
std::string checksum(std::initializer_list<std::string_view> parts);

// A name from a file in a form for terminals: quoted, escaped and not too long.
std::string shown_name(std::string_view name);

}  // namespace keel::io
