// Tensors in files: the safetensors format (8-byte little-endian length, JSON header, data), with
// checksums that detect every changed byte.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "src/core/tensor.h"

namespace keel::io {

struct TensorFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// The content of a file without its data.
struct TensorFileInfo {
  std::map<std::string, TensorType> tensors;
  std::map<std::string, std::string> metadata;
  bool has_checksums = false;  // true for every file that write_safetensors wrote
};

struct SafetensorsOptions {
  // Refuse a file without checksums. With them, any single changed byte is detected for certain.
  bool require_checksums = false;
};

// Chooses the tensors of a TensorFile that are written.
using IsWritten = bool (*)(std::string_view name);

// Writes the whole file or nothing (see AtomicFile); the same content gives the same bytes. Tensors
// are ordered by falling element size, then by name, so that each is aligned to its elements; the
// data begin at a multiple of 64 bytes. The metadata also get the checksums described in
// safetensors_header.h, which no reading function returns. Throws Error{kIo}, and Error{kUsage} for
// names or metadata that are not UTF-8, that are reserved for the format or the checksums, or that
// are too many.
void write_safetensors(
    const std::filesystem::path& path, const TensorFile& file,
    IsWritten is_written = [](std::string_view) { return true; });

// Reads a file that anyone may have written. Nothing is allocated before it is known to fit the
// file's size; checksums, if present, are verified. Throws Error{kIo} when the system refuses to
// read, Error{kBadInput} with the file, the place and what was expected for anything malformed.
TensorFile read_safetensors(const std::filesystem::path& path,
                            const SafetensorsOptions& options = {});

// Reads the tensors one by one, verifies their checksums and forgets them. A file without checksums
// is accepted unless they are required. Throws as read_safetensors().
void verify_safetensors(const std::filesystem::path& path, const SafetensorsOptions& options = {});

// The same for only the header; the data are neither read nor verified.
TensorFileInfo read_safetensors_info(const std::filesystem::path& path,
                                     const SafetensorsOptions& options = {});

}  // namespace keel::io
