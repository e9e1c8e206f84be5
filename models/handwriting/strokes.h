// Handwriting as a pen moves: what a line of it is, wherever it comes from.
#pragma once

#include <string>
#include <vector>

#include "frontend/data/corpus.h"
#include "models/handwriting/alphabet.h"

namespace keel::models {

// A point: how far the pen has moved from the one before, y upwards, and whether it is lifted
// after the point.
struct PenPoint {
  float dx = 0, dy = 0;
  bool lifts = false;
};

// The first point is where the line begins; its dx and dy are 0.
struct WrittenLine {
  std::vector<std::int32_t> text;  // numbers of an alphabet
  std::vector<PenPoint> points;
};

using WrittenLines = std::vector<WrittenLine>;

// The origin is such as "data/handwriting/iamondb-lines.tsv.xz, 120 of 10951 lines left out".
struct HandwritingCorpus : data::Corpus<WrittenLines> {
  Alphabet alphabet;
};

}  // namespace keel::models
