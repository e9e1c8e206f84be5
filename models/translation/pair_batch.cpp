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
  const Shape own{rows, source}, other{rows, target};
  return {{"source", {DType::kI32, own}, Dictionary::kPad},
          {"source_mask", {DType::kU8, own}},
          {"target_in", {DType::kI32, other}, Dictionary::kPad},
          {"target_out", {DType::kI32, other}, kNoToken},
          {"target_mask", {DType::kU8, other}},
          {"asked", {DType::kI32, {rows}}}};
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
