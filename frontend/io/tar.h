// The files in a tar archive (POSIX ustar and GNU), read without trusting it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keel::io {

struct TarEntry {
  std::string name;
  std::string_view content;  // of the archive's bytes
};

// The regular files of an archive, in its order; folders, links and all other entries are skipped.
// `who` begins every message. Throws Error{kBadInput} that names the offset for a header with a
// wrong checksum, a size that is no number or goes beyond the end, and an archive that has no end
// mark.
std::vector<TarEntry> read_tar(std::string_view archive, const std::string& who);

// An archive of files with these names, of at most 99 bytes, and contents.
std::string tar_bytes(const std::vector<TarEntry>& files);

}  // namespace keel::io
