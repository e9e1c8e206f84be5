// The rows of a batch whose elements draw random numbers, and the kernels that draw them.
#pragma once

#include "backends/onednn/blocks.h"
#include "backends/onednn/philox_stream.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// Rows that draw random numbers; the first is row `first_row` of the update.
struct RandomRows {
  PhiloxStream stream;
  SampledRows rows;
  std::int64_t first_row;

  // The number of blocks of all rows. A block has words for `each` elements, and the last block
  // of a row is partly filled.
  std::int64_t blocks(std::int64_t each) const {
    return rows.rows * ((rows.width + each - 1) / each);
  }
};

// Makes the kernel of an op that draws a number for each element of `rows`, from the stream given
// by inputs In::kStep and In::kFirstRow. It calls run(binding, sampled, begin, end) for ranges
// [begin, end) of blocks of `each` elements.
template <class In, class Attrs, class Run>
Prepared by_sampled_rows(const Attrs& attrs, const SampledRows& rows, std::int64_t each, Run run) {
  const auto sampled_by = [=](const Binding& b) {
    const auto scalar = [&](int place) { return *b.inputs[std::size_t(place)].as<std::int32_t>(); };
    return RandomRows{PhiloxStream::of(attrs, scalar(In::kStep)), rows, scalar(In::kFirstRow)};
  };
  const auto all = [=](const Binding& b) {
    const RandomRows sampled = sampled_by(b);
    parallel_range(sampled.blocks(each), kBlockElements / each,
                   [&](std::int64_t begin, std::int64_t end) { run(b, sampled, begin, end); });
  };
  // Where no block is partly filled, elements [first, last) are blocks of their own.
  if (rows.width % each != 0) return kernel_of(all);
  const auto range = [=](const Binding& b, std::int64_t first, std::int64_t last) {
    run(b, sampled_by(b), first / each, last / each);
  };
  return element_kernel_of(
      range, [all](const Binding& b, const auto&) { all(b); }, each);
}

}  // namespace keel::onednn
