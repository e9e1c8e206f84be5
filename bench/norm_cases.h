// Generated inputs of norms.
#pragma once

#include "bench/norm_runner.h"

namespace keel::bench {

// The places of the elements of one group: those that are normalized by one mean and deviation.
enum class NormLayout {
  kRows,        // x (groups / split, split * n)
  kColumns,     // x (n, groups)
  kImages,      // x (a, groups, 1, n / a), where a is the least divisor of n above 1
  kInstances,   // x (groups / split, split, 1, n)
  kSequences,   // x (a, n, groups / a), where a is the least divisor of groups above 1
  kThumbnails,  // x (n / a, groups, 1, a), where a is the greatest divisor of n up to 64
};

struct NormCase {
  NormLayout layout = NormLayout::kRows;
  std::int64_t groups = 3, n = 17;
  double mean = 0, deviation = 1, eps = 1e-5;
  bool gain = true, bias = true;
  int states = 0;          // state inputs: a row of zeros, then of ones
  std::int64_t split = 1;  // neighbouring groups that make up a row or an image; divides groups

  static constexpr auto fields() {
    using C = NormCase;
    return std::tuple{field("groups", &C::groups), field("n", &C::n),
                      field("split", &C::split),   field("mean", &C::mean),
                      field("eps", &C::eps),       field("deviation", &C::deviation),
                      field("gain", &C::gain),     field("bias", &C::bias)};
  }
  // "columns,groups=3,n=17,split=1,..." without spaces, and the case that such a text describes;
  // options that it omits keep their defaults. Throws Error{kUsage} for any other text.
  std::string text() const;
  static NormCase parse(std::string_view text);

  // The index in x of element e of group k.
  std::int64_t at(std::int64_t k, std::int64_t e) const;
  Shape shape() const;
  // The shape of gain and bias: an element for each of a row, else per column, channel or instance.
  Shape parameter_shape() const;
  // The element of gain and bias for element e of group k.
  std::int64_t parameter(std::int64_t k, std::int64_t e) const;
};

// Normal numbers that a float holds exactly: x with the given mean and deviation, dy standard
// normal, gain 1 +- 0.2, bias +- 0.2.
NormData make_data(const NormCase& c);

// Puts `value(e)`, rounded to float, into the elements of group k of x.
void set_group(NormData& data, const NormCase& c, std::int64_t k,
               const std::function<double(std::int64_t e)>& value);

// The cases that norms are compared on: first one in `every` of all combinations of sizes to 16385,
// mean / deviation to 1e6, deviations from 1e-4 to 1e3, eps, gain and bias (one in 4 * every of the
// longest groups), then one in every / 11 of a list of numbers of groups to 65536. `every` is no
// multiple of 13; if it is 1, the first cases have more groups as well.
std::vector<NormCase> generated_cases(NormLayout layout, int every);
// Shapes that are cut into several blocks and panels.
std::vector<NormCase> large_cases(NormLayout layout);
// Shapes that end before, at and after registers of every width, runs of sums and blocks of rows,
// some with a mean far from 0: those whose bits are compared between machines.
std::vector<NormCase> hashed_cases(NormLayout layout);

}  // namespace keel::bench
