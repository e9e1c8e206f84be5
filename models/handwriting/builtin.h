// "glyph strokes": synthetic handwriting of eight letters, so that the task can be tried without a
// download.
#pragma once

#include "models/handwriting/strokes.h"

namespace keel::models {

// 2,000, 200 and 200 lines for training, validation and testing, always the same ones.
//   text     6 to 8 of the letters "cilnouvz", all equally likely
//   letter   a fixed poly-line of 8 to 14 points in one stroke; the pen is lifted after it
//   line     its size is 1 + 0.1 N(0, 1) and it leans by N(0, 0.15^2) to the right, in x per y
//   point    its offset has N(0, 0.05^2) added in x and in y, where a letter's pieces are about 1
//            long
HandwritingCorpus make_glyph_strokes();

}  // namespace keel::models
