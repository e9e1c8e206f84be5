// The merges of byte-pair encoding (Sennrich et al. 2016), as lists and as the usual files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace keel::text {

// Stands at the end of a word's last symbol.
inline constexpr std::string_view kEndOfWord = "</w>";
// Stands at the end of a sub-word that is not the last one of its word.
inline constexpr std::string_view kContinues = "@@";

struct BpeMerge {
  std::string left, right;
  friend bool operator==(const BpeMerge&, const BpeMerge&) = default;
};

// Merges in the order in which they were learned. In files of version 0.1, which have no version
// line, a word's end marker is a symbol of its own; from version 0.2 on it is part of the word's
// last character.
struct BpeCodes {
  std::vector<BpeMerge> merges;
  bool separate_end = false;  // version 0.1

  // Reads a file of subword-nmt: perhaps `#version: 0.2`, then `left right` in each line. If a
  // merge comes twice, the first counts. Throws as read_text, and Error{kBadInput} with file and
  // line for another version, and for a line that is not two symbols with one space between.
  static BpeCodes load(const std::filesystem::path& path);
  static BpeCodes parse(std::string_view content, const std::string& file);
  std::string text() const;
};

}  // namespace keel::text
