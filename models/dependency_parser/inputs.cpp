#include "models/dependency_parser/inputs.h"

#include <algorithm>

namespace keel::models {

std::vector<task::Input> parser_inputs(std::int64_t rows, std::int64_t classes) {
  return {{"features", {DType::kI32, {rows, std::int64_t{kFeatures}}}},
          {"legal", {DType::kU8, {rows, classes}}},
          {"label", {DType::kI32, {rows}}}};
}

void clear_batch(task::Batch& batch, std::int64_t rows, const Symbols& symbols) {
  if (batch.sizes != task::Sizes{rows}) {
    batch.sizes = {rows};
    batch.values.clear();
    for (const task::Input& input : parser_inputs(rows, symbols.classes().size())) {
      batch.values.emplace_back(input.type);
    }
  }
  batch.rows.assign(static_cast<std::size_t>(rows), -1);
  batch.items = 0;
  const auto features = batch.values[kFeaturesInput].as<std::int32_t>();
  for (auto row = features.begin(); row != features.end();) {
    for (const FeaturePart& part : symbols.parts()) row = std::fill_n(row, part.columns, part.none);
  }
  std::ranges::fill(batch.values[kLegalInput].as<std::uint8_t>(), std::uint8_t{0});
  std::ranges::fill(batch.values[kLabelInput].as<std::int32_t>(), kNoClass);
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
