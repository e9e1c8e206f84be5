// The inputs of the network: configurations as rows of a batch.
#pragma once

#include <span>
#include <vector>

#include "frontend/task/batch.h"
#include "models/dependency_parser/features.h"
#include "models/dependency_parser/symbols.h"

namespace keel::models {

// The inputs of a batch of `rows` configurations:
//   features  i32 (rows, 48)       rows of the table, features.h
//   legal     u8 (rows, classes)   1 for the transitions that the configuration allows
//   label     i32 (rows)           the class of the right one, kNoClass where it does not count
std::vector<task::Input> parser_inputs(std::int64_t rows, std::int64_t classes);
enum ParserInput : std::size_t { kFeaturesInput, kLegalInput, kLabelInput };
inline constexpr std::int32_t kNoClass = -1;

// Makes all `rows` rows of a batch padding; a batch of that size keeps its tensors.
void clear_configurations(task::Batch& batch, std::int64_t rows, const Symbols& symbols);

// A configuration of a sentence. Labels are those of the arcs so far, by node.
struct ParserRow {
  FeatureNodes nodes;
  Legal legal;
  const FeatureRows& sentence;
  std::span<const std::int32_t> labels;
};
// Writes the features and the legal transitions into a place of the batch.
void write_row(task::Batch& batch, std::size_t place, const ParserRow& row, const Symbols& symbols);

}  // namespace keel::models
