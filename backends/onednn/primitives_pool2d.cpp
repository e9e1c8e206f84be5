// Pooling of oneDNN.
#include "backends/onednn/primitives_plan.h"
#include "src/ops/pool2d.h"

namespace keel::onednn {
namespace {

struct Geometry {
  explicit Geometry(const PoolSpec& spec)
      : x(image(spec.x, spec.channels_last)),
        y(image(spec.y, spec.channels_last)),
        index(image(spec.y, spec.channels_last, dnnl::memory::data_type::u8)),
        algorithm(spec.is_max ? dnnl::algorithm::pooling_max
                              : dnnl::algorithm::pooling_avg_exclude_padding),
        window{spec.window, spec.window},
        stride{spec.stride, spec.stride} {
    for (int axis : {2, 3}) {
      // Negative where the last window ends before the image does.
      after.push_back((spec.y[axis] - 1) * spec.stride + spec.window - spec.x[axis]);
    }
  }

  auto forward(const dnnl::primitive_attr& attributes) const {
    return dnnl::pooling_forward::primitive_desc(cpu_engine(), dnnl::prop_kind::forward_training,
                                                 algorithm, x, y, stride, window, none, none, after,
                                                 attributes);
  }

  Desc x, y, index;
  dnnl::algorithm algorithm;
  Dims window, stride, none{0, 0}, after;
};

}  // namespace

Prepared make_avg_pool(const PoolSpec& spec) {
  return make_plan([&](Plan& plan) {
    const Geometry g(spec);
    const auto describe = [&](const dnnl::primitive_attr& attributes) {
      return g.forward(attributes);
    };
    plan.add(describe, false, [&](const auto&) {
      return std::vector<Argument>{{DNNL_ARG_SRC, g.x, input(0)}, {DNNL_ARG_DST, g.y, output(0)}};
    });
  });
}

Prepared make_pool_backward(const PoolSpec& spec) {
  return make_plan([&](Plan& plan) {
    const Geometry g(spec);
    const auto describe = [&](const dnnl::primitive_attr& attributes) {
      return dnnl::pooling_backward::primitive_desc(cpu_engine(), g.algorithm, g.x, g.y, g.stride,
                                                    g.window, g.none, g.none, g.after,
                                                    g.forward(attributes), attributes);
    };
    plan.add(describe, false, [&](const auto& description) {
      // oneDNN's "workspace" of max pooling is the op's index, if it lies like y.
      if (spec.is_max && description.workspace_desc() != g.index) {
        throw dnnl::error(dnnl_unimplemented, "the index of max pooling has another form");
      }
      using In = PoolBackwardInput;
      std::vector<Argument> arguments{{DNNL_ARG_DIFF_DST, g.y, input(In::kDy)},
                                      {DNNL_ARG_DIFF_SRC, g.x, output(0)}};
      if (spec.is_max) arguments.push_back({DNNL_ARG_WORKSPACE, g.index, input(In::kIndex)});
      return arguments;
    });
  });
}

}  // namespace keel::onednn
