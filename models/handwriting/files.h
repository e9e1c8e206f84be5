// Lines of the IAM On-Line Handwriting Database (Liwicki & Bunke 2005), one a row of a table.
#pragma once

#include <filesystem>

#include "models/handwriting/strokes.h"

namespace keel::models {

// Reads FOLDER/iamondb-lines.tsv or FOLDER/handwriting/iamondb-lines.tsv, plain, .gz or .xz. A row
// has four fields with tabs between:
//   id     "a01-000u-01"; lines whose first seven characters agree are of one text
//   text   what is written, in UTF-8; characters beyond Alphabet::of_letters() count as one
//   count  of the points
//   points "dx dy e" of each, joined by commas: whole numbers, how far the pen has moved since the
//          point before (the first: since the origin), y downwards, and e = 1 for a point behind
//          which the pen is lifted, else 0
// The published lists of lines for training, validation and testing are of forms that this table
// does not name; of the texts, in an order drawn once, a tenth is for validation, a tenth for
// testing, so that no text is in two of them.
//
// Lines of less than 100 points, and lines with a point further from the one before than 25
// standard deviations of the training lines' offsets, where the whiteboard lost the pen, are left
// out of all three.
//
// Throws Error{kIo} when the file is missing, and Error{kBadInput} that names file, line, what was
// expected and what came.
HandwritingCorpus read_iam_lines(const std::filesystem::path& folder);

// One row of the table. `place` begins the messages.
struct IamRow {
  std::string text_id;  // of seven characters
  WrittenLine line;
};
IamRow parse_iam_row(std::string_view row, const Alphabet& alphabet, std::string_view place);

}  // namespace keel::models
