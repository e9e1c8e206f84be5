#include "models/handwriting/data.h"

#include <utility>

#include "models/handwriting/builtin.h"
#include "models/handwriting/files.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

const std::string& asset(const task::Assets& assets, const char* name) {
  const auto found = assets.find(name);
  check(found != assets.end(), ErrorKind::kBadInput, "expected an asset '{}', got none", name);
  return found->second;
}

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

void keep_first(HandwritingCorpus& corpus, std::int64_t rows) {
  const std::int64_t beyond = std::ssize(corpus.train) - rows;
  if (rows == 0 || beyond <= 0) return;
  corpus.train.resize(std::size_t(rows));
  corpus.left_out.push_back({beyond, fmt::format("train_rows is {}", rows)});
}

}  // namespace

task::Assets HandwritingFacts::assets() const {
  return {{"alphabet", alphabet.text()}, {"scale", scale.text()}};
}

HandwritingFacts HandwritingFacts::parse(const task::Assets& assets) {
  return {Alphabet::parse(asset(assets, "alphabet")), OffsetScale::parse(asset(assets, "scale"))};
}

HandwritingData HandwritingData::load(const task::DataRequest& request,
                                      const std::optional<HandwritingFacts>& facts) {
  HandwritingCorpus corpus =
      request.source == "builtin" ? make_glyph_strokes() : read_iam(request.source);
  keep_first(corpus, request.train_rows);
  if (!facts) {
    HandwritingFacts own{corpus.alphabet, OffsetScale::of(corpus.train)};
    return {std::move(corpus), std::move(own)};
  }
  check(facts->alphabet.text() == corpus.alphabet.text(), ErrorKind::kBadInput,
        "[handwriting] {}: expected data of the alphabet '{}', got '{}'", corpus.origin,
        facts->alphabet.text(), corpus.alphabet.text());
  return {std::move(corpus), *facts};
}

std::unique_ptr<StrokeStream> HandwritingData::stream(task::Split split,
                                                      const StrokeStreamOptions& options) const {
  const bool train = split == task::Split::kTrain, valid = split == task::Split::kValid;
  const WrittenLines& lines = train ? corpus_.train : valid ? corpus_.valid : corpus_.test;
  std::vector<StrokeRow> rows;
  for (const WrittenLine& line : lines) rows.push_back(row_of(line, facts_.scale));
  const char* const name = train ? "train" : valid ? "valid" : "test";
  return std::make_unique<StrokeStream>(fmt::format("handwriting {}, {}", name, corpus_.origin),
                                        std::move(rows), options,
                                        train ? corpus_.left_out : std::vector<task::LeftOut>{});
}

}  // namespace keel::models
