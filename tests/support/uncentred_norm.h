// The part of check_norm for the norms over columns that divide by a quadratic mean and subtract
// nothing: a constant group does not give the bias, and their nodes save no mean.
#pragma once

#include "tests/support/norm_template.h"

namespace keel::test {

// y = x * rstd * gain + bias, as norm_terms knows its op.
struct UncentredSpec {
  NormBuild build;
  NormLayout layout = NormLayout::kColumns;
  int states = 1;              // f32 (channels) each, all ones
  bool own_statistics = true;  // false: rstd does not depend on x
};

// In one SUBCASE each: agreement of the tested backend with the reference on generated and large
// cases, within the bounds of norm_errors; a NaN or Inf stays in its group and, with own
// statistics, sizes from 1e-30 to FLT_MAX / 4 are handled; the same bits for any thread count and
// in place.
void check_uncentred_norm(const UncentredSpec& spec);

// With a row mask the norm gives what it gives without the rows left out, whatever those hold, and
// y = dx = 0 there: on every CPU backend. `states` are f32 (channels) each.
using MaskedBuild = std::function<Value(Graph&, const NormInputs&, Value mask)>;
void check_row_mask(const MaskedBuild& build, int states);

}  // namespace keel::test
