// Matrix product.
#include "src/ops/matmul.h"

#include "backends/onednn/kernels/empty_sum.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/primitives.h"

namespace keel::onednn {
namespace {

// The width of b's panels if oneDNN reads just these, otherwise 0.
std::int64_t panel_width(const Shape& b, const MatmulSpec& spec) {
  const PanelForm form = matmul_panels(spec);
  if (form.width == 0 || spec.batch > 1) return 0;
  return b == form.shape(spec.k, spec.n) ? form.width : 0;
}

}  // namespace

Prepared prepare_matmul(const NodeContext& context) {
  using In = MatmulInput;
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
                  .relu = attrs.activation == Activation::kRelu};
  if (context.output().shape.elements() == 0) return do_nothing();
  if (spec.k == 0) return fill_bias(In::kBias, 1, spec.relu);
  // Rows that lie one after another and meet the same matrix are one product.
  if (spec.shared_b && !spec.transpose_a) {
    spec.m *= spec.batch;
    spec.batch = 1;
  }
  if (attrs.panel_columns > 0) {
    spec.panel_width = panel_width(context.input(In::kB).shape, spec);
    if (spec.panel_width == 0) return refuse("oneDNN reads other panels here, or none");
  }
  return make_matmul(spec);
}

}  // namespace keel::onednn
