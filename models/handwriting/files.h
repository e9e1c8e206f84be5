// Lines of the IAM On-Line Handwriting Database (Liwicki & Bunke 2005) and how they are split.
#pragma once

#include <filesystem>

#include "frontend/task/batch.h"
#include "models/handwriting/iam_release.h"
#include "models/handwriting/scale.h"

namespace keel::models {

// Reads the lines of FOLDER or of FOLDER/handwriting: a table iamondb-lines.tsv, plain, .gz or .xz,
// or else the release's own folders (iam_release.h). Tabs separate the four fields of a row of the
// table:
//   id     "a01-000u-01"; lines whose first seven characters agree are of one text
//   text   the written text in UTF-8; characters beyond Alphabet::of_letters() count as one
//   count  of the points
//   points "dx dy e" of each, joined by commas: dx and dy are whole numbers, the move of the pen
//          since the previous point (the first: since the origin), y downwards; e = 1 for a point
//          after which the pen is lifted, else 0
//
// If the release's list testset_v.txt lies beside its folders, its forms are for validation and
// also for testing, and all others for training (Graves 2013, section 5). Otherwise a tenth of the
// texts, in an order drawn once, is for validation and a tenth for testing, so that no text is in
// two of them.
//
// All three leave out lines of less than 100 points, and lines with a point further from the
// previous one than 25 standard deviations of the training lines' offsets, where the whiteboard
// lost the pen.
//
// Throws Error{kIo} if the files are missing, and Error{kBadInput} that names file, line, what was
// expected and what was found.
HandwritingCorpus read_iam(const std::filesystem::path& folder);
// All lines of a table as the one split `split`, which is evaluated; `scale` is that of training.
HandwritingCorpus read_iam_table(const std::filesystem::path& file, task::Split split,
                                 const OffsetScale& scale);

// One row of the table. `place` begins the messages.
IamLine parse_iam_row(std::string_view row, const Alphabet& alphabet, std::string_view place);

}  // namespace keel::models
