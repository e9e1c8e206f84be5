#include "program/processor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace keel::cli {
namespace {

namespace fs = std::filesystem;

// The value of the first line "key : value"; empty without one.
std::string cpuinfo(const std::string& key) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) == key) {
      return line.substr(colon + 2);
    }
  }
  return "";
}

std::string first_word(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

// "32K L1d", from a folder that describes a cache; empty for a cache of instructions only.
std::string cache_text(const fs::path& folder) {
  const std::string type = first_word(folder / "type"), size = first_word(folder / "size");
  if (size.empty() || type == "Instruction") return "";
  return fmt::format("{} L{}{}", size, first_word(folder / "level"), type == "Data" ? "d" : "");
}

}  // namespace

std::string processor_text() {
  const std::string name = cpuinfo("model name");
  std::string text = name.empty() ? "unknown processor" : name;
  for (const char* key : {"cpu family", "model"}) {
    const std::string value = cpuinfo(key), word = std::string(key) == "model" ? key : "family";
    if (!value.empty()) text += fmt::format(", {} {}", word, value);
  }
  std::vector<std::string> caches;
  const fs::path folder = "/sys/devices/system/cpu/cpu0/cache";
  for (int i = 0; fs::exists(folder / fmt::format("index{}", i)); ++i) {
    const std::string cache = cache_text(folder / fmt::format("index{}", i));
    if (!cache.empty()) caches.push_back(cache);
  }
  return caches.empty() ? text : fmt::format("{}: {}", text, fmt::join(caches, ", "));
}

}  // namespace keel::cli
