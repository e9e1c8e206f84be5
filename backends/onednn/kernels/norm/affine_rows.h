// The backward of a row norm that has a gain and a bias of each column: dx row by row, and the two
// sums over rows.
#pragma once

#include "backends/onednn/column_sums.h"
#include "backends/onednn/row_blocks.h"

namespace keel::onednn {

struct AffineRows;

// One block of the plan's rows, and the element-wise nodes that run on the same rows.
struct AffineBlock {
  const AffineRows& plan;
  std::size_t block;
  RowRange rows;
  const Neighbours& neighbours;
};

struct AffineRows {
  // The kinds of sums, in the order in which write_gradients forms them. They are also the norm's
  // outputs 1 and 2.
  enum Sums : std::size_t { kGain, kBias, kSums };

  RowBlocks blocks;
  ColumnSums sums;
  bool has_sums;
  bool is_wide;  // rows are so wide that dgain and dbias are summed separately

  AffineRows(const NodeContext& context, const RowSizes& sizes)
      : AffineRows(sizes,
                   context.output(1 + kGain).bytes() + context.output(1 + kBias).bytes() > 0) {}

  std::int64_t sum_bytes() const { return has_sums && !is_wide ? sums.bytes() : 0; }
  std::size_t width() const { return std::size_t(blocks.width); }

  // Runs body(AffineBlock) for every block.
  template <class Body>
  void run(const Neighbours& neighbours, const Body& body) const {
    blocks.run([&](std::size_t block, const RowRange& rows) {
      body(AffineBlock{*this, block, rows, neighbours});
    });
  }

  static const TensorRef& out(const Binding& b, Sums kind) { return b.outputs[1 + kind]; }

  // Makes the kernel from run(binding, neighbours). Sums of wide columns read all of dy before dx,
  // which may lie over it, is written.
  template <class Run>
  Prepared kernel(Run run, std::int64_t workspace) const {
    if (is_wide) return kernel_of([run](const Binding& b) { run(b, Neighbours{}); }, workspace);
    return row_kernel_of(blocks.width, run, workspace);
  }

 private:
  AffineRows(const RowSizes& sizes, bool has)
      : blocks(gradient_row_blocks(sizes, kSums, has)),
        sums(kSums, blocks.width, blocks.count),
        has_sums(has),
        is_wide(has && onednn::is_wide(sizes)) {}
};

}  // namespace keel::onednn
