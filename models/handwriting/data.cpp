#include "models/handwriting/data.h"

#include "models/handwriting/builtin.h"
#include "models/handwriting/files.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

StrokeRow row_of(const WrittenLine& line, const OffsetScale& scale) {
  StrokeRow row{{}, line.text};
  for (std::size_t i = 0; i < line.points.size(); ++i) {
    const PenPoint& p = line.points[i];
    // Where a line begins no offset is known.
    row.points.push_back(i == 0 ? 0 : float(scale.normal_x(p.dx)));
    row.points.push_back(i == 0 ? 0 : float(scale.normal_y(p.dy)));
    row.points.push_back(p.lifts ? 1 : 0);
  }
  return row;
}

}  // namespace

HandwritingFacts HandwritingFacts::of(const HandwritingCorpus& corpus) {
  return {corpus.alphabet, OffsetScale::of(corpus.train)};
}

task::Assets HandwritingFacts::assets() const {
  return {{"alphabet", alphabet.text()}, {"scale", scale.text()}};
}

HandwritingFacts HandwritingFacts::parse(const task::Assets& assets) {
  return {Alphabet::parse(task::find_asset(assets, "alphabet")),
          OffsetScale::parse(task::find_asset(assets, "scale"))};
}

HandwritingCorpus read_handwriting(const task::DataRequest& request,
                                   const HandwritingFacts* known) {
  if (request.is_whole_file() && known != nullptr) {
    return read_iam_table(request.source, *request.only, known->scale);
  }
  HandwritingCorpus corpus =
      request.source == "builtin" ? make_glyph_strokes() : read_iam(request.source);
  data::keep_first(corpus.train, request.train_rows, corpus.skipped);
  return corpus;
}

std::vector<StrokeRow> stroke_rows(const WrittenLines& lines, const OffsetScale& scale) {
  std::vector<StrokeRow> rows;
  for (const WrittenLine& line : lines) rows.push_back(row_of(line, scale));
  return rows;
}

}  // namespace keel::models
