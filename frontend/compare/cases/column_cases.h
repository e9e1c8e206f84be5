// The ops of src/ops/column_moments.h and src/ops/column_gradient_sums.h on sampled inputs.
#pragma once

#include "frontend/compare/cases/case_builder.h"

namespace keel::compare {

// The shapes of the inputs, and the kind of their numbers.
struct ColumnCase {
  Shape tokens, images, parts;  // (rows, channels), (n, channels, h, w), (shards, 4, channels)
  Sampled sampled;

  static ColumnCase small() { return {{9, 33}, {2, 5, 3, 4}, {3, 4, 33}, Sampled::kNormal}; }
  static ColumnCase large() {
    return {{4133, 19}, {67, 12, 9, 11}, {1061, 4, 19}, Sampled::kHostileColumns};
  }
};

// Each case_of_... marks the values to be compared. The first four also add the norms that take
// these statistics or sums as inputs.
void case_of_moments(CaseBuilder& d, const ColumnCase& of);
void case_of_squares(CaseBuilder& d, const ColumnCase& of);
void case_of_centred_sums(CaseBuilder& d, const ColumnCase& of);
void case_of_uncentred_sums(CaseBuilder& d, const ColumnCase& of);
void case_of_merged_moments(CaseBuilder& d, const ColumnCase& of);
void case_of_merged_sums(CaseBuilder& d, const ColumnCase& of);

// The same in the form of BuildOp.
template <void (*kCase)(CaseBuilder&, const ColumnCase&)>
void small_columns(CaseBuilder& d) {
  kCase(d, ColumnCase::small());
}
template <void (*kCase)(CaseBuilder&, const ColumnCase&)>
void large_columns(CaseBuilder& d) {
  kCase(d, ColumnCase::large());
}

}  // namespace keel::compare
