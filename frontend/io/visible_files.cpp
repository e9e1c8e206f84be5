#include "frontend/io/visible_files.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace keel::io {

namespace fs = std::filesystem;

bool is_hidden(std::string_view name) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.starts_with('.') && part != "." && part != "..") return true;
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return false;
}

std::string lower_ending(const fs::path& file) {
  std::string ending = file.extension().string();
  for (char& c : ending) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  return ending;
}

void SkippedFiles::add_ending(const fs::path& file) {
  const std::string ending = lower_ending(file);
  add(ending.empty() ? "without an ending" : ending);
}

std::string SkippedFiles::note() const {
  std::vector<std::string> parts;
  for (const auto& [kind, count] : counts_) parts.push_back(fmt::format("{}: {}", kind, count));
  return parts.empty() ? "" : fmt::format("; left out: {}", fmt::join(parts, ", "));
}

std::vector<fs::path> visible_entries(const fs::path& folder, std::error_code& error,
                                      SkippedFiles* skipped) {
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_hidden(it->path().filename().string())) {
      entries.push_back(it->path());
    } else if (skipped != nullptr) {
      skipped->add_hidden();
    }
  }
  std::ranges::sort(entries);
  return entries;
}

std::vector<fs::path> visible_files_below(const fs::path& folder, std::error_code& error,
                                          SkippedFiles* skipped) {
  std::vector<fs::path> files;
  using Walk = fs::recursive_directory_iterator;
  for (Walk it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (is_hidden(it->path().filename().string())) {
      it.disable_recursion_pending();
      if (skipped != nullptr) skipped->add_hidden();
    } else if (it->is_regular_file(ignored)) {
      files.push_back(it->path());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace keel::io
