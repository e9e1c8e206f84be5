// The ops of src/ops/column_moments.h and src/ops/column_gradient_sums.h on drawn inputs.
#pragma once

#include "frontend/compare/draft.h"

namespace keel::compare {

// The shapes of the inputs, and the kind of their numbers.
struct ColumnDraft {
  Shape tokens, images, parts;  // (rows, channels), (n, channels, h, w), (shards, 4, channels)
  Drawn drawn;

  static ColumnDraft small() { return {{9, 33}, {2, 5, 3, 4}, {3, 4, 33}, Drawn::kNormal}; }
  static ColumnDraft large() {
    return {{4133, 19}, {67, 12, 9, 11}, {1061, 4, 19}, Drawn::kHostileColumns};
  }
};

// Each draft_... marks the values to be compared. The first four also add the norms that take these
// statistics or sums as inputs.
void draft_moments(Draft& d, const ColumnDraft& of);
void draft_squares(Draft& d, const ColumnDraft& of);
void draft_centred_sums(Draft& d, const ColumnDraft& of);
void draft_uncentred_sums(Draft& d, const ColumnDraft& of);
void draft_merged_moments(Draft& d, const ColumnDraft& of);
void draft_merged_sums(Draft& d, const ColumnDraft& of);

// The same in the form of BuildOp.
template <void (*kDraft)(Draft&, const ColumnDraft&)>
void small_columns(Draft& d) {
  kDraft(d, ColumnDraft::small());
}
template <void (*kDraft)(Draft&, const ColumnDraft&)>
void large_columns(Draft& d) {
  kDraft(d, ColumnDraft::large());
}

}  // namespace keel::compare
