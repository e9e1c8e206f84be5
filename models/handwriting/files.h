// Lines of the IAM On-Line Handwriting Database (Liwicki & Bunke 2005) and how they are split.
#pragma once

#include <filesystem>

#include "models/handwriting/iam_release.h"

namespace keel::models {

// Reads the lines of FOLDER or of FOLDER/handwriting: a table iamondb-lines.tsv, plain, .gz or .xz,
// or else the release's own folders (iam_release.h). A row of the table has four fields with tabs
// between:
//   id     "a01-000u-01"; lines whose first seven characters agree are of one text
//   text   what is written, in UTF-8; characters beyond Alphabet::of_letters() count as one
//   count  of the points
//   points "dx dy e" of each, joined by commas: whole numbers, how far the pen has moved since the
//          point before (the first: since the origin), y downwards, and e = 1 for a point after
//          which the pen is lifted, else 0
//
// Where the release's list testset_v.txt lies beside its folders, its forms are for validation, and
// for testing too, and all others for training, as Graves (2013, section 5) has it. Otherwise a
// tenth of the texts, in an order drawn once, is for validation and a tenth for testing, so that no
// text is in two of them.
//
// Lines of less than 100 points, and lines with a point further from the one before than 25
// standard deviations of the training lines' offsets, where the whiteboard lost the pen, are left
// out of all three.
//
// Throws Error{kIo} when the files are missing, and Error{kBadInput} that names file, line, what
// was expected and what came.
HandwritingCorpus read_iam(const std::filesystem::path& folder);

// One row of the table. `place` begins the messages.
IamLine parse_iam_row(std::string_view row, const Alphabet& alphabet, std::string_view place);

}  // namespace keel::models
