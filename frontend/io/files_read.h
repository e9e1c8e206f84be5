// Which files this process has read, so that none of them is written over by mistake.
#pragma once

#include <filesystem>

namespace keel::io {

// Takes down an open file, or the file of that name, as one that is read. Every reader of files
// does so; whoever is going to read a file later may say so beforehand. What is no regular file
// does not count.
void note_read(int descriptor);
void note_read(const std::filesystem::path& path);

// Whether that file was taken down, by whatever name: the file itself counts, not its path.
bool was_read(const std::filesystem::path& path);

}  // namespace keel::io
