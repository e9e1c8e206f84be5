// Matrix product.
#include "src/ops/matmul.h"

#include "backends/onednn/kernels/bf16.h"
#include "backends/onednn/kernels/empty_sum.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/primitives.h"

namespace keel::onednn {
namespace {

using In = MatmulInput;

// The product of a node, b being a matrix however the node has it stored.
MatmulSpec spec_of(const NodeContext& context) {
  const auto& attrs = context.attrs<MatmulAttrs>();
  const MatmulSizes sizes =
      matmul_sizes(context.input(In::kA).shape, context.input(In::kB).shape, attrs);
  MatmulSpec spec{.batch = sizes.batch,
                  .m = sizes.m,
                  .k = sizes.k,
                  .n = sizes.n,
                  .transpose_a = attrs.transpose_a,
                  .transpose_b = attrs.transpose_b,
                  .shared_b = sizes.shared_b,
                  .bias = context.has(In::kBias),
                  .relu = attrs.activation == Activation::kRelu,
                  .narrow = context.input(In::kA).dtype == DType::kBF16};
  // Rows that lie one after another and meet the same matrix are one product.
  if (spec.shared_b && !spec.transpose_a) {
    spec.m *= spec.batch;
    spec.batch = 1;
  }
  return spec;
}

}  // namespace

PackedLayout matmul_packing(const NodeContext& context) {
  const MatmulSpec spec = spec_of(context);
  return spec.batch == 1 && spec.shared_b && !spec.narrow ? preferred_packing(spec)
                                                          : PackedLayout{};
}

Prepared prepare_matmul(const NodeContext& context) {
  MatmulSpec spec = spec_of(context);
  if (context.output().shape.elements() == 0) return do_nothing();
  if (spec.k == 0) return fill_bias(In::kBias, 1, spec.relu);
  if (context.attrs<MatmulAttrs>().packed_columns > 0) {
    const PackedLayout form = matmul_packing(context);
    const bool reads = form.width > 0 && context.input(In::kB).shape == form.shape(spec.k, spec.n);
    if (!reads) return refuse("oneDNN reads other panels here, or none");
    spec.packed_width = form.width;
  }
  return prepare_product(context, spec, make_matmul);
}

}  // namespace keel::onednn
