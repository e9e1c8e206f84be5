// The files in a tar archive of any form, read through libarchive without trusting it.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/visible_files.h"

namespace keel::io {

struct TarEntry {
  std::string name;
  std::string_view content;  // of the archive's bytes, or of TarFiles::expanded
};

struct TarFiles {
  std::vector<TarEntry> files = {};
  SkippedFiles skipped = {};             // every other member but folders
  std::list<std::string> expanded = {};  // contents of files that were packed without their holes
};

// The files of an archive, in its order; several archives one after another count as one. A link is
// read as the file of the archive that it leads to, and a later file replaces an earlier one of the
// same name. Left out, and counted, are hidden files, links that lead to no file of the archive,
// devices, pipes, and members of unknown types. `who` begins every message. Throws
// Error{kBadInput}, which names the place, for damage, an early end, an archive without an end
// mark, and holes of more than 64 MiB.
TarFiles read_tar(std::string_view archive, const std::string& who);

}  // namespace keel::io
