// Colours and dashes of groups: a norm has the same ones in every chart of every report.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "frontend/io/plot.h"
#include "frontend/report/groups.h"

namespace keel::report {

// The style (io::PlotSeries::style) of a norm, written as in a recipe: "adanorm{C=0.3}". Each of
// keel's norms has its own style; any other name gets one of the rest, always the same.
std::size_t style_of_norm(const std::string& norm);

// A style for each group. The first group of a norm has the norm's style. Further groups of that
// norm have its colour and other dashes if the section has several norms, as long as there are any,
// and else styles that no other group of the section has.
std::vector<std::size_t> styles_of(const Section& section);

// Gives series that are named after norms, "layernorm" or "layernorm, seed 1", the norms' styles.
// A plot with another series, or with a norm twice, stays as it is.
void set_norm_styles(io::Plot& plot);

}  // namespace keel::report
