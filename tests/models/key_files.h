// Small files of the forms that tasks read, for tests of the keys that act only on files.
#pragma once

#include <filesystem>

namespace keel::models {

// A folder with a folder for each task that has such keys, by the task's name; written once in each
// process. Where a key chooses between forms of files, the folder has both, with other contents.
const std::filesystem::path& key_files();

}  // namespace keel::models
