// The IAM On-Line Handwriting Database (Liwicki & Bunke 2005) in the form of its release.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/handwriting/strokes.h"

namespace keel::models {

// One line of a form.
struct IamLine {
  std::string
      form;  // "a01-000u", or with a line's number; its first seven characters are the text's
  WrittenLine line;
};

// The lines of a folder that holds the folders of lineStrokes-all.tar and ascii-all.tar:
//   ascii/a01/a01-000/a01-000u.txt               the lines of a form after a line "CSR:", in UTF-8
//   lineStrokes/a01/a01-000/a01-000u-01.xml, ... <Stroke> of <Point x y>, whole numbers,
//                                                y downwards
// The k-th file of a form is its k-th line.
struct IamRelease {
  std::vector<IamLine> lines;  // form by form, in the order of their names
  std::int64_t unmatched = 0;  // lines left out because their form has another number of files
};

// Whether a folder has a folder lineStrokes.
bool has_iam_release(const std::filesystem::path& folder);
// Throws Error{kIo} for files that cannot be read, and Error{kBadInput} that names the file and the
// expected content.
IamRelease read_iam_release(const std::filesystem::path& folder, const Alphabet& alphabet);

// The forms in a list of the release, such as testset_v.txt: one in each line, with spaces around
// it. Empty if there is no such file.
std::set<std::string> read_iam_list(const std::filesystem::path& path);

// Parsers of its parts; each takes the text of a file. `place` begins the messages.
std::vector<std::string> parse_iam_lines(std::string_view text, std::string_view place);
std::vector<PenPoint> parse_iam_strokes(std::string_view xml, std::string_view place);

}  // namespace keel::models
