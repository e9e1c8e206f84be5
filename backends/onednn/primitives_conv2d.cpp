// Convolutions of oneDNN. Weights stay in the plain order of the graph, and the kernel copies them
// into the order that the primitive prefers. No single order would save these copies in a training
// step: forward, backward by input and backward by weight prefer three different ones, and none
// makes forward and backward by input both fast. For plain weights oneDNN has only reference code,
// a hundred times slower; a copy costs about a hundredth of its convolution.
#include "backends/onednn/primitives_plan.h"
#include "src/ops/conv2d.h"

namespace keel::onednn {
namespace {

constexpr auto kDirect = dnnl::algorithm::convolution_direct;
constexpr auto kTraining = dnnl::prop_kind::forward_training;

using Type = dnnl::memory::data_type;

// Element types; of a convolution of bf16 factors, two are bf16, and its result is f32.
struct Types {
  Type x = Type::f32, weight = Type::f32, y = Type::f32;
};
constexpr auto kBf16 = Type::bf16;
Types forward_types(const ConvSpec& spec) {
  return spec.narrow ? Types{.x = kBf16, .weight = kBf16} : Types{};
}
Types backward_input_types(const ConvSpec& spec) {
  return spec.narrow ? Types{.weight = kBf16, .y = kBf16} : Types{};
}
Types backward_weight_types(const ConvSpec& spec) {
  return spec.narrow ? Types{.x = kBf16, .y = kBf16} : Types{};
}

struct Geometry {
  Geometry(const ConvSpec& spec, const Types& types)
      : x(image(spec.x, spec.channels_last, types.x)),
        y(image(spec.y, spec.channels_last, types.y)),
        weight(image(spec.weight, false, types.weight)),
        any_weight(any_order(spec.weight, types.weight)),
        strides{spec.stride, spec.stride} {
    for (int axis : {2, 3}) {
      // The padding that the last window covers; less than all of it if the stride skips some.
      const std::int64_t covered = (spec.y[axis] - 1) * spec.stride + spec.weight[axis];
      before.push_back(spec.padding);
      after.push_back(covered - spec.x[axis] - spec.padding);
    }
  }

  auto forward(const Desc& bias, const dnnl::primitive_attr& attributes) const {
    return dnnl::convolution_forward::primitive_desc(cpu_engine(), kTraining, kDirect, x,
                                                     any_weight, bias, y, strides, before, after,
                                                     attributes);
  }

  Desc x, y, weight, any_weight;
  Dims strides, before, after;
};

// The forward description that backward primitives ask for; its result may be of another type than
// theirs.
auto hint_of(const ConvSpec& spec) {
  return Geometry(spec, forward_types(spec)).forward(Desc(), attributes(Relu::kNone));
}

// `weight` in `order`, copied there by the plan if it is not the graph's.
Place ordered(Plan& plan, const Geometry& g, const Place& weight, const Desc& order) {
  if (order == g.weight) return weight;
  const Place place = plan.reserve(order);
  plan.reorder(g.weight, weight, order, place);
  return place;
}

}  // namespace

Prepared make_conv(const ConvSpec& spec) {
  return make_plan([&](Plan& plan) {
    const Geometry g(spec, forward_types(spec));
    const Desc bias = spec.bias ? vector_desc(spec.weight[0]) : Desc();
    const auto describe = [&](const dnnl::primitive_attr& attributes) {
      return g.forward(bias, attributes);
    };
    plan.add(describe, spec.relu, [&](const auto& description) {
      using In = ConvInput;
      const Desc order = description.weights_desc();
      const Place weight = ordered(plan, g, input(In::kWeight), order);
      std::vector<Argument> arguments{{DNNL_ARG_SRC, g.x, input(In::kX)},
                                      {DNNL_ARG_WEIGHTS, order, weight},
                                      {DNNL_ARG_DST, g.y, output(0)}};
      if (spec.bias) arguments.push_back({DNNL_ARG_BIAS, bias, input(In::kBias)});
      return arguments;
    });
  });
}

Prepared make_conv_backward_input(const ConvSpec& spec) {
  return make_plan([&](Plan& plan) {
    const Geometry g(spec, backward_input_types(spec));
    const auto describe = [&](const dnnl::primitive_attr& attributes) {
      return dnnl::convolution_backward_data::primitive_desc(cpu_engine(), kDirect, g.x,
                                                             g.any_weight, g.y, g.strides, g.before,
                                                             g.after, hint_of(spec), attributes);
    };
    plan.add(describe, false, [&](const auto& description) {
      using In = ConvDxInput;
      const Desc order = description.weights_desc();
      const Place weight = ordered(plan, g, input(In::kWeight), order);
      return std::vector<Argument>{{DNNL_ARG_DIFF_DST, g.y, input(In::kDy)},
                                   {DNNL_ARG_WEIGHTS, order, weight},
                                   {DNNL_ARG_DIFF_SRC, g.x, output(0)}};
    });
  });
}

Prepared make_conv_backward_weight(const ConvSpec& spec) {
  return make_plan([&](Plan& plan) {
    const Geometry g(spec, backward_weight_types(spec));
    const auto describe = [&](const dnnl::primitive_attr& attributes) {
      return dnnl::convolution_backward_weights::primitive_desc(
          cpu_engine(), kDirect, g.x, g.any_weight, g.y, g.strides, g.before, g.after,
          hint_of(spec), attributes);
    };
    Desc order;
    Place place = output(0);
    plan.add(describe, false, [&](const auto& description) {
      order = description.diff_weights_desc();
      if (order != g.weight) place = plan.reserve(order);
      using In = ConvDweightInput;
      return std::vector<Argument>{{DNNL_ARG_SRC, g.x, input(In::kX)},
                                   {DNNL_ARG_DIFF_DST, g.y, input(In::kDy)},
                                   {DNNL_ARG_DIFF_WEIGHTS, order, place}};
    });
    if (order != g.weight) plan.reorder(order, place, g.weight, output(0));
  });
}

}  // namespace keel::onednn
