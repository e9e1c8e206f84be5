// The parts of check_norm. Gradients are in norm_gradient_checks.cpp, agreement with the reference
// and single values in norm_value_checks.cpp, the same bits again in norm_bit_checks.cpp.
#pragma once

#include "tests/support/norm_template.h"

namespace keel::test {

// The case c with the layout and the states of the norm.
NormCase case_of(const NormSpec& spec, NormCase c);
// The data of such a case, with the parameters of the norm.
NormData data_of(const NormSpec& spec, const NormCase& c);
// A run on the backend under test, or on the reference; `in_place` as in run_norm.
NormResult run_fast(const NormSpec& spec, const NormData& data, int threads = 2);
NormResult run_reference(const NormSpec& spec, const NormData& data, bool in_place = false);
// Whether outputs and gradients are the same bits.
bool same_bits(const NormResult& a, const NormResult& b);
bool has_fast_backend();

// Agreement with the reference on the data of a case.
void check_data(const NormSpec& spec, const NormCase& c, const NormData& data);
// Exact and composed gradients, with and without gain and bias.
void check_gradients(const NormSpec& spec);
// Generated and large cases and their workspace.
void check_against_reference(const NormSpec& spec);
// Elements whose squares a float cannot hold, without an eps that hides them.
void check_tiny_values(const NormSpec& spec);
// Groups whose mean jumps, after few elements or many, so that the pivot of sums is far off.
void check_jumping_means(const NormSpec& spec);
// dgain and dbias that grow over tens of thousands of terms.
void check_long_sums(const NormSpec& spec);
// Groups of one value give exactly the bias, on the reference too.
void check_constant_groups(const NormSpec& spec);
// Sizes from 1e-40 to FLT_MAX (to 1 without own statistics), zeros, NaN and Inf.
void check_specials(const NormSpec& spec);
void check_threads(const NormSpec& spec);
// Any order and split of rows (kRows).
void check_rows(const NormSpec& spec);
void check_in_place(const NormSpec& spec);

}  // namespace keel::test
