// A user's own file: sentences, each with a label of one word or more.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace keel::models {

struct LabelledText {
  std::string label, text;
  std::int64_t line = 0;  // of the file, from 1
};

struct LabelledFile {
  std::vector<LabelledText> rows;
  bool was_windows_1252 = false;
};

// The endings of the names of such files, before .gz or .xz.
inline constexpr std::array<std::string_view, 4> kLabelledEndings = {".txt", ".tsv", ".csv",
                                                                     ".jsonl"};

// Reads a file, plain or packed, by the ending of its name:
//   .txt    LABEL, one blank or tab, TEXT in every line; a label has no blank
//   .tsv    LABEL, a tab, TEXT in every line; a label may have blanks
//   .csv    RFC 4180; the first record names the columns, among them one "label" and one "text"
//   .jsonl  {"label": ..., "text": ...} in every line; a label may be a whole number, too
// Blanks around labels do not count. All but .jsonl may be in Windows-1252 if they are not UTF-8.
// Throws as io::PackedFile, and Error{kBadInput} that names file and line for everything else: an
// empty line, an empty label or text, a label of more than 200 bytes or with a control character,
// and a tree of SST in place of a sentence.
LabelledFile read_labelled(const std::filesystem::path& path);

}  // namespace keel::models
