// Which entries of a folder or an archive a reader looks at, and what it says about the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace keel::io {

// Whether a name in a folder or an archive, or one of the folders in it, begins with a dot, as
// ".cache/a.txt" and the "._a.txt" of macOS do. No reader takes data from a hidden file.
bool is_hidden(std::string_view name);

// Counts by kind the files that a reader left out.
class SkippedFiles {
 public:
  void add(const std::string& kind) { ++counts_[kind]; }
  void add_hidden() { add("hidden"); }
  // By its ending, in lower case.
  void add_ending(const std::filesystem::path& file);
  // "; left out: .webp: 3, hidden: 2"; "" if nothing was left out.
  std::string note() const;

 private:
  std::map<std::string, std::int64_t> counts_;
};

// The entries of a folder in the order of their names, without the hidden ones, which are counted
// if `skipped` is given. `error` is what the system says if the folder cannot be listed.
std::vector<std::filesystem::path> visible_entries(const std::filesystem::path& folder,
                                                   std::error_code& error,
                                                   SkippedFiles* skipped = nullptr);

// The same for all files in the folder and in its folders.
std::vector<std::filesystem::path> visible_files_below(const std::filesystem::path& folder,
                                                       std::error_code& error,
                                                       SkippedFiles* skipped = nullptr);

// The ending of a file's name with its dot, in lower case: ".png".
std::string lower_ending(const std::filesystem::path& file);

}  // namespace keel::io
