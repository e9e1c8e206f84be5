#include "backends/onednn/primitives_norm_peer.h"

#include "backends/onednn/primitives_plan.h"

namespace keel::onednn {
namespace {

using Flags = dnnl::normalization_flags;
using Layer = dnnl::layer_normalization_forward;
using LayerBackward = dnnl::layer_normalization_backward;
using Batch = dnnl::batch_normalization_forward;
using BatchBackward = dnnl::batch_normalization_backward;

const Flags kAffine = Flags::use_scale | Flags::use_shift;
constexpr auto kForward = dnnl::prop_kind::forward_training;
constexpr auto kBackward = dnnl::prop_kind::backward;

// A matrix is an image of one pixel, channels last, to batch normalization.
Desc data_desc(const NormPeerSpec& spec) {
  const Shape& x = spec.x;
  if (spec.kind == NormPeerSpec::kLayer) {
    return {Dims{x[0], spec.parameters()}, dnnl::memory::data_type::f32,
            dnnl::memory::format_tag::ab};
  }
  return x.rank() == 4 ? image(x, false) : image({x[0], x[1], 1, 1}, true);
}

auto describe_layer(const NormPeerSpec& spec, const dnnl::primitive_attr& attributes) {
  const Desc data = data_desc(spec);
  return Layer::primitive_desc(cpu_engine(), kForward, data, data, float(spec.eps), kAffine,
                               attributes);
}

auto describe_batch(const NormPeerSpec& spec, const dnnl::primitive_attr& attributes) {
  const Desc data = data_desc(spec);
  return Batch::primitive_desc(cpu_engine(), kForward, data, data, float(spec.eps), kAffine,
                               attributes);
}

auto describe_layer_backward(const NormPeerSpec& spec, const dnnl::primitive_attr& attributes) {
  const Desc data = data_desc(spec);
  return LayerBackward::primitive_desc(cpu_engine(), kBackward, data, data, data, float(spec.eps),
                                       kAffine, describe_layer(spec, attributes), attributes);
}

auto describe_batch_backward(const NormPeerSpec& spec, const dnnl::primitive_attr& attributes) {
  const Desc data = data_desc(spec);
  return BatchBackward::primitive_desc(cpu_engine(), kBackward, data, data, data, float(spec.eps),
                                       kAffine, describe_batch(spec, attributes), attributes);
}

std::vector<Argument> arguments(const NormPeerSpec& spec, bool backward) {
  const Desc data = data_desc(spec), affine = vector_desc(spec.parameters()),
             statistic = vector_desc(spec.statistics());
  if (!backward) {
    return {{DNNL_ARG_SRC, data, input(0)},        {DNNL_ARG_SCALE, affine, input(1)},
            {DNNL_ARG_SHIFT, affine, input(2)},    {DNNL_ARG_DST, data, output(0)},
            {DNNL_ARG_MEAN, statistic, output(1)}, {DNNL_ARG_VARIANCE, statistic, output(2)}};
  }
  std::vector<Argument> result{
      {DNNL_ARG_SRC, data, input(0)},           {DNNL_ARG_DIFF_DST, data, input(1)},
      {DNNL_ARG_MEAN, statistic, input(2)},     {DNNL_ARG_VARIANCE, statistic, input(3)},
      {DNNL_ARG_SCALE, affine, input(4)},       {DNNL_ARG_DIFF_SRC, data, output(0)},
      {DNNL_ARG_DIFF_SCALE, affine, output(1)}, {DNNL_ARG_DIFF_SHIFT, affine, output(2)}};
  // Layer normalization wants the bias too, batch normalization refuses it.
  if (spec.kind == NormPeerSpec::kLayer) {
    result.push_back({DNNL_ARG_SHIFT, affine, input(5)});
  }
  return result;
}

template <class Describe>
Prepared make(const NormPeerSpec& spec, const Describe& describe, bool backward) {
  Plan plan;
  try {
    plan.add([&](const dnnl::primitive_attr& a) { return describe(spec, a); }, false,
             [&](const auto&) { return arguments(spec, backward); });
  } catch (const dnnl::error& error) {
    return refuse(fmt::format("oneDNN {}: {}", library_version(), error.what()));
  }
  return std::move(plan).finish();
}

}  // namespace

std::int64_t NormPeerSpec::parameters() const {
  return kind == kLayer ? x.elements(1, x.rank()) : x[1];
}

std::int64_t NormPeerSpec::statistics() const { return kind == kLayer ? x[0] : x[1]; }

Prepared make_norm_peer(const NormPeerSpec& spec) {
  return spec.kind == NormPeerSpec::kLayer ? make(spec, describe_layer, false)
                                           : make(spec, describe_batch, false);
}

Prepared make_norm_peer_backward(const NormPeerSpec& spec) {
  return spec.kind == NormPeerSpec::kLayer ? make(spec, describe_layer_backward, true)
                                           : make(spec, describe_batch_backward, true);
}

}  // namespace keel::onednn
