// The part of check_norm for the norms over columns that divide by a quadratic mean and subtract
// nothing: a constant group does not give the bias, and their nodes save no mean.
#pragma once

#include "tests/support/norm_template.h"

namespace keel::test {

// y = x * rpsi * gain + bias;  dx = factor * (g - slope * x * rpsi), g = dy * gain. Output 1 of the
// node is rpsi, output `factor` is factor (groups); slope is the mean of g * x * rpsi, or state 1.
struct UncentredSpec {
  NormBuild build;
  NormLayout layout = NormLayout::kColumns;
  int states = 1;  // f32 (channels) each, all ones
  std::size_t factor = 1;
  bool slope_is_state = false;
  bool own_statistics = true;  // false: rpsi does not depend on x
};

// In one SUBCASE each: agreement of the tested backend with the reference on generated and large
// cases, forward 16 eps, backward 64 eps on the scale of the terms of dx; a NaN or Inf stays in its
// group and, with own statistics, sizes from 1e-30 to FLT_MAX / 4 are handled; the same bits for
// any thread count and in place.
void check_uncentred_norm(const UncentredSpec& spec);

// With a row mask the norm gives what it gives without the rows left out, whatever those hold, and
// y = dx = 0 there: on every CPU backend. `states` are f32 (channels) each.
using MaskedBuild = std::function<Value(Graph&, const NormInputs&, Value mask)>;
void check_row_mask(const MaskedBuild& build, int states);

}  // namespace keel::test
