#include "models/dependency_parser/inputs.h"

#include <algorithm>

#include "frontend/data/dataset.h"

namespace keel::models {

std::vector<task::Input> parser_inputs(std::int64_t rows, std::int64_t classes) {
  return {{"features", {DType::kI32, {rows, std::int64_t{kFeatures}}}},
          {"legal", {DType::kU8, {rows, classes}}},
          {"label", {DType::kI32, {rows}}, kNoClass}};
}

void clear_configurations(task::Batch& batch, std::int64_t rows, const Symbols& symbols) {
  data::clear_batch(batch, {rows}, parser_inputs(rows, symbols.classes().size()));
  const auto features = batch.values[kFeaturesInput].as<std::int32_t>();
  for (auto row = features.begin(); row != features.end();) {
    for (const FeaturePart& part : symbols.parts()) row = std::fill_n(row, part.columns, part.none);
  }
}

void write_row(task::Batch& batch, std::size_t place, const ParserRow& row,
               const Symbols& symbols) {
  const auto features = batch.values[kFeaturesInput].as<std::int32_t>();
  write_features(row.nodes, row.sentence, row.labels, symbols.first_label(),
                 features.subspan(place * kFeatures).data());
  const std::span<const std::uint8_t> legal = symbols.classes().legal(row.legal);
  std::ranges::copy(
      legal, batch.values[kLegalInput].as<std::uint8_t>().subspan(place * legal.size()).begin());
}

}  // namespace keel::models
