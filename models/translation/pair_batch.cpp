#include "models/translation/pair_batch.h"

#include <algorithm>

#include "frontend/text/dictionary.h"

namespace keel::models {
namespace {

using text::Dictionary;

// The places of one row of a value (rows, length).
template <class T>
std::span<T> row_of(task::Batch& batch, PairInput value, std::size_t place) {
  const std::span<T> all = batch.values[value].as<T>();
  const std::size_t length = all.size() / static_cast<std::size_t>(batch.sizes[0]);
  return all.subspan(place * length, length);
}

}  // namespace

std::vector<task::Input> pair_inputs(const task::Sizes& sizes) {
  const std::int64_t rows = sizes.at(0), source = sizes.at(1), target = sizes.at(2);
  return {
      {"source", {DType::kI32, {rows, source}}},     {"source_mask", {DType::kU8, {rows, source}}},
      {"target_in", {DType::kI32, {rows, target}}},  {"target_out", {DType::kI32, {rows, target}}},
      {"target_mask", {DType::kU8, {rows, target}}}, {"asked", {DType::kI32, {rows}}}};
}

void clear_pairs(task::Batch& batch, const task::Sizes& sizes) {
  if (batch.sizes != sizes) {
    batch.sizes = sizes;
    batch.values.clear();
    for (const task::Input& input : pair_inputs(sizes)) {
      batch.values.emplace_back(input.type.dtype, input.type.shape);
    }
  }
  for (PairInput value : {kSource, kTargetIn}) {
    std::ranges::fill(batch.values[value].as<std::int32_t>(), Dictionary::kPad);
  }
  std::ranges::fill(batch.values[kTargetOut].as<std::int32_t>(), kNoToken);
  std::ranges::fill(batch.values[kAsked].as<std::int32_t>(), 0);
  for (PairInput mask : {kSourceMask, kTargetMask}) {
    std::ranges::fill(batch.values[mask].as<std::uint8_t>(), std::uint8_t{0});
  }
}

void put_pair(task::Batch& batch, std::size_t place, const NumberedPair& pair) {
  const auto source = row_of<std::int32_t>(batch, kSource, place);
  const auto in = row_of<std::int32_t>(batch, kTargetIn, place);
  std::ranges::copy(pair.source, source.begin());
  std::ranges::copy(pair.target, row_of<std::int32_t>(batch, kTargetOut, place).begin());
  in[0] = Dictionary::kEnd;
  std::ranges::copy(pair.target.begin(), pair.target.end() - 1, in.begin() + 1);
  std::ranges::fill(row_of<std::uint8_t>(batch, kSourceMask, place).first(pair.source.size()),
                    std::uint8_t{1});
  std::ranges::fill(row_of<std::uint8_t>(batch, kTargetMask, place).first(pair.target.size()),
                    std::uint8_t{1});
}

}  // namespace keel::models
