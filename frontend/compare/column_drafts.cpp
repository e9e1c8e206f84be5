#include "frontend/compare/column_drafts.h"

#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"

namespace keel::compare {
namespace {

// A gain and a bias of a feature, and two states that are positive.
struct DraftChannels {
  ops::NormAffine affine;
  Value first, second;

  DraftChannels(Draft& d, const Shape& x)
      : affine{d.normal({x[1]}), d.normal({x[1]})},
        first(d.positive({x[1]})),
        second(d.positive({x[1]})) {}
};

// Batch norm given its moments, and the sums that its backward would be given.
void given_moments(Draft& d, Value x, Value mask, ColumnPadding padding) {
  const DraftChannels of(d, d.graph.shape(x));
  const Value moments = ops::column_moments(d.graph, x, mask);
  const Value y = ops::batch_norm(d.graph, x, of.affine, {of.first, of.second, mask, moments},
                                  {.padding = padding});
  const ops::CentredColumns columns{x, y.at(BatchNormOutput::kMean), y.at(BatchNormOutput::kRstd),
                                    d.normal(d.graph.shape(x)), mask};
  const bool counts = padding == ColumnPadding::kPnCode;
  d.mark({y, moments, ops::centred_gradient_sums(d.graph, columns, {counts})});
}

void given_squares(Draft& d, Value x, Value mask) {
  const DraftChannels of(d, d.graph.shape(x));
  const Value squares = ops::column_squares(d.graph, x, mask);
  d.differentiate({ops::pn_v(d.graph, x, of.affine, {of.first, mask, squares})});
  d.mark({squares});
}

// PowerNorm whose Gamma counts all rows.
void given_all_squares(Draft& d, Value x, Value mask) {
  const DraftChannels of(d, d.graph.shape(x));
  const Value squares = ops::column_squares(d.graph, x, mask, {.all_rows = true});
  d.differentiate({ops::power_norm(d.graph, x, of.affine, {of.first, of.second, {}, mask, squares},
                                   {.pad_stats = true})});
  d.mark({squares});
}

}  // namespace

void draft_moments(Draft& d, const ColumnDraft& of) {
  given_moments(d, d.floats(of.drawn, of.tokens), d.mask({of.tokens[0]}), ColumnPadding::kExact);
  given_moments(d, d.normal(of.images), {}, ColumnPadding::kExact);
}

void draft_centred_sums(Draft& d, const ColumnDraft& of) {
  given_moments(d, d.normal(of.tokens), {}, ColumnPadding::kExact);
  given_moments(d, d.normal(of.tokens), d.mask({of.tokens[0]}), ColumnPadding::kPnCode);
}

void draft_squares(Draft& d, const ColumnDraft& of) {
  given_squares(d, d.floats(of.drawn, of.tokens), d.mask({of.tokens[0]}));
  given_squares(d, d.normal(of.images), {});
}

void draft_uncentred_sums(Draft& d, const ColumnDraft& of) {
  given_squares(d, d.normal(of.tokens), {});
  given_all_squares(d, d.normal(of.tokens), d.mask({of.tokens[0]}));
}

void draft_merged_moments(Draft& d, const ColumnDraft& of) {
  d.mark({ops::merge_moments(d.graph, d.doubles(Drawn::kPositive, of.parts))});
}

void draft_merged_sums(Draft& d, const ColumnDraft& of) {
  d.mark({ops::merge_sums(d.graph, d.doubles(Drawn::kNormal, of.parts))});
}

}  // namespace keel::compare
