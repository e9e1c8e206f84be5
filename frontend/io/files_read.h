// The files that this process has read, so that none of them is overwritten by mistake.
#pragma once

#include <filesystem>

namespace keel::io {

// Records an open file, or the file of that name, as one that is read. Every reader of files
// calls this; code that is going to read a file later may call it beforehand. Only regular files
// count.
void note_read(int descriptor);
void note_read(const std::filesystem::path& path);

// Whether that file was recorded, under any name: the file itself counts, not its path.
bool was_read(const std::filesystem::path& path);

}  // namespace keel::io
