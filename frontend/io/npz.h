// Named arrays in NumPy's .npz format: a zip archive of .npy files.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "src/core/tensor.h"

namespace keel::io {

using Arrays = std::map<std::string, Tensor>;

// The limit of a file's size, and of the size of all its arrays together.
inline constexpr std::int64_t kMaxNpzBytes = std::int64_t(1) << 30;

// Reads files of numpy.savez and savez_compressed through the archive's directory: every offset,
// length and checksum is verified, no two entries may overlap or have the same name, and memory is
// bounded by kMaxNpzBytes. Names are printable ASCII without slashes. Arrays as in parse_npy.
// Throws Error{kIo} when the system refuses to read, Error{kBadInput} naming file and entry.
Arrays read_npz(const std::filesystem::path& path);
// The same for a file's content; messages call it `path`.
Arrays parse_npz(std::string_view bytes, const std::string& path);

// The file for numpy.load: uncompressed entries in the order of names, all with one fixed date, so
// that the same arrays give the same bytes. Throws Error{kUsage} for names that read_npz would
// refuse and for more than kMaxNpzBytes.
std::string npz_bytes(const Arrays& arrays);
// The same file, written whole or not at all, without a copy of the arrays. Throws as npz_bytes and
// AtomicFile.
void write_npz(const std::filesystem::path& path, const Arrays& arrays);

}  // namespace keel::io
