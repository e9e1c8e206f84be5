// Cases of the statistics of columns, of their sums in a backward, and of the norms given them.
#include "frontend/compare/cases/op_cases.h"
#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"

namespace keel::compare {
namespace {

// The shapes of the inputs, and the kind of their numbers.
struct ColumnCase {
  Shape tokens, images, parts;  // (rows, channels), (n, channels, h, w), (shards, 4, channels)
  Sampled sampled;
};
ColumnCase small_columns() { return {{9, 33}, {2, 5, 3, 4}, {3, 4, 33}, Sampled::kNormal}; }
ColumnCase large_columns() {
  return {{kManyRows, 19}, {67, 12, 9, 11}, {1061, 4, 19}, Sampled::kHostileColumns};
}

// A gain and a bias of a feature, and two states that are positive.
struct CaseChannels {
  ops::NormAffine affine;
  Value first, second;

  CaseChannels(CaseBuilder& d, const Shape& x)
      : affine{d.normal({x[1]}), d.normal({x[1]})},
        first(d.positive({x[1]})),
        second(d.positive({x[1]})) {}
};

// Batch norm given its moments, and the sums that its backward would be given.
void given_moments(CaseBuilder& d, Value x, Value mask, ColumnPadding padding) {
  const CaseChannels of(d, d.graph.shape(x));
  const Value moments = ops::column_moments(d.graph, x, mask);
  const Value y = ops::batch_norm(d.graph, x, of.affine, {of.first, of.second, mask, moments},
                                  {.padding = padding});
  const ops::CentredColumns columns{x, y.at(BatchNormOutput::kMean), y.at(BatchNormOutput::kRstd),
                                    d.normal(d.graph.shape(x)), mask};
  const bool counts = padding == ColumnPadding::kPnCode;
  d.mark({y, moments, ops::centred_gradient_sums(d.graph, columns, {counts})});
}

void given_squares(CaseBuilder& d, Value x, Value mask) {
  const CaseChannels of(d, d.graph.shape(x));
  const Value squares = ops::column_squares(d.graph, x, mask);
  d.differentiate({ops::pn_v(d.graph, x, of.affine, {of.first, mask, squares})});
  d.mark({squares});
}

// PowerNorm whose Gamma counts all rows.
void given_all_squares(CaseBuilder& d, Value x, Value mask) {
  const CaseChannels of(d, d.graph.shape(x));
  const Value squares = ops::column_squares(d.graph, x, mask, {.all_rows = true});
  d.differentiate({ops::power_norm(d.graph, x, of.affine, {of.first, of.second, {}, mask, squares},
                                   {.pad_stats = true})});
  d.mark({squares});
}

void moments_case(CaseBuilder& d, const ColumnCase& of) {
  given_moments(d, d.floats(of.sampled, of.tokens), d.mask({of.tokens[0]}), ColumnPadding::kExact);
  given_moments(d, d.normal(of.images), {}, ColumnPadding::kExact);
}

void centred_sums_case(CaseBuilder& d, const ColumnCase& of) {
  given_moments(d, d.normal(of.tokens), {}, ColumnPadding::kExact);
  given_moments(d, d.normal(of.tokens), d.mask({of.tokens[0]}), ColumnPadding::kPnCode);
}

void squares_case(CaseBuilder& d, const ColumnCase& of) {
  given_squares(d, d.floats(of.sampled, of.tokens), d.mask({of.tokens[0]}));
  given_squares(d, d.normal(of.images), {});
}

void uncentred_sums_case(CaseBuilder& d, const ColumnCase& of) {
  given_squares(d, d.normal(of.tokens), {});
  given_all_squares(d, d.normal(of.tokens), d.mask({of.tokens[0]}));
}

void merged_moments_case(CaseBuilder& d, const ColumnCase& of) {
  d.mark({ops::merge_moments(d.graph, d.doubles(Sampled::kPositive, of.parts))});
}

void merged_sums_case(CaseBuilder& d, const ColumnCase& of) {
  d.mark({ops::merge_sums(d.graph, d.doubles(Sampled::kNormal, of.parts))});
}

template <void (*kCase)(CaseBuilder&, const ColumnCase&)>
constexpr OpCases column_rows{[](CaseBuilder& d) { kCase(d, small_columns()); },
                              [](CaseBuilder& d) { kCase(d, large_columns()); }};

}  // namespace

const OpCaseTable& column_cases() {
  static const OpCaseTable table{{"column_moments", column_rows<moments_case>},
                                 {"column_squares", column_rows<squares_case>},
                                 {"merge_moments", column_rows<merged_moments_case>},
                                 {"merge_sums", column_rows<merged_sums_case>},
                                 {"centred_gradient_sums", column_rows<centred_sums_case>},
                                 {"uncentred_gradient_sums", column_rows<uncentred_sums_case>}};
  return table;
}

}  // namespace keel::compare
