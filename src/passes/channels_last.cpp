// Channels last: convolutions, pooling and norms on images stored as (n, h, w, c).
//
// Every value can have two forms in the new graph, planar (as the old graph stores it) and channels
// last. Each form is made when it is first asked for, by a transpose of the other; ops that do not
// care about the order of axes stay with channels last where their operands are. A norm over
// columns then has the pixels of all images as its rows, and a layer norm over whole images has its
// gain and bias turned, which are small.
#include <algorithm>

#include "src/graph/next_name.h"
#include "src/graph/tables.h"
#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "src/ops/image_order.h"
#include "src/ops/layout.h"
#include "src/ops/norm/norm.h"
#include "src/ops/pool2d.h"
#include "src/ops/reduce.h"
#include "src/passes/image_norms.h"
#include "src/passes/pipeline.h"

namespace keel {
namespace {

using Axes = std::vector<std::int64_t>;

const Axes kToLast{0, 2, 3, 1};    // (n, c, h, w) -> (n, h, w, c)
const Axes kToPlanar{0, 3, 1, 2};  // and back

bool is_image(const Shape& shape) { return shape.rank() == 4; }

bool is_spatial(const OpInfo* op) {
  return op == &kConv2d || op == &kMaxPool2d || op == &kAvgPool2d;
}

// Values for each axis, in the order of channels last.
Axes turned_axes(const Axes& planar) {
  Axes last;
  for (const std::int64_t axis : kToLast) last.push_back(planar[std::size_t(axis)]);
  return last;
}

// Whether both forms are the same bytes.
bool is_same_order(const Shape& planar) { return planar[1] == 1 || planar[2] * planar[3] == 1; }

class Converter {
 public:
  explicit Converter(const Graph& source)
      : source_(source), planar_(source), last_(source), rows_(source) {
    for (int i = 0; i < source.size(); ++i) has_spatial_ |= is_spatial(source.node(i).op);
  }

  Graph run() {
    for (int i = 0; i < source_.size(); ++i) visit(i);
    for (const NamedValue& output : source_.outputs()) {
      target_.mark_output(output.name, planar(output.value));
    }
    for (const Update& update : source_.updates()) {
      target_.mark_update(planar(update.leaf), planar(update.next));
    }
    return std::move(target_);
  }

 private:
  using Forms = PerValue<Value>;  // of an old value: the new one, absent while nobody asked for it

  void visit(int index) {
    const Node& node = source_.node(index);
    if (node.kind == NodeKind::kOp && converts(index)) return;
    std::vector<Value> inputs;
    for (Value v : node.inputs) inputs.push_back(planar(v));
    register_outputs(index, target_.append(node, inputs), planar_);
  }

  // Adds the node in channels-last form if it has one.
  bool converts(int index) {
    const Node& node = source_.node(index);
    if (node.op == &kConv2d) return convert_spatial<ConvAttrs>(index, {ConvInput::kX});
    if (node.op == &kConv2dBackwardInput) {
      return convert_spatial<ConvBackwardAttrs>(index, {ConvDxInput::kDy});
    }
    if (node.op == &kConv2dBackwardWeight) {
      return convert_spatial<ConvBackwardAttrs>(index,
                                                {ConvDweightInput::kX, ConvDweightInput::kDy});
    }
    if (node.op == &kMaxPool2d || node.op == &kAvgPool2d) {
      return convert_spatial<PoolAttrs>(index, {0});
    }
    if (node.op == &kMaxPool2dBackward || node.op == &kAvgPool2dBackward) {
      return convert_spatial<PoolBackwardAttrs>(
          index, {PoolBackwardInput::kDy, PoolBackwardInput::kIndex});
    }
    if (node.op == &kFusedElementwise || elementwise_code(*node.op))
      return convert_elementwise(index);
    if (node.op == &kSum || node.op == &kMean || node.op == &kMax) return convert_reduction(index);
    const std::vector<int> images = column_norm_images(*node.op);
    if (!images.empty()) return convert_columns(index, images);
    if (is_layer_norm_of_images(node)) return convert_layer_norm(index);
    if (node.op == &kPad || node.op == &kSlice) return convert_frame(index);
    if (node.op == &kBroadcastTo) return convert_broadcast(index);
    return node.op == &kTranspose && convert_transpose(index);
  }

  // Convolutions and pooling; the inputs listed are images, others (weights, bias) stay as they
  // are.
  template <class T>
  bool convert_spatial(int index, const std::vector<int>& images) {
    const Node& node = source_.node(index);
    T attrs = node.attrs.as<T>();
    if (attrs.channels_last) return false;
    attrs.channels_last = true;
    const bool gives_image = node.op != &kConv2dBackwardWeight;
    if constexpr (requires { attrs.shape; }) {
      if (gives_image) attrs.shape = stored_shape(attrs.shape, true);
    }
    std::vector<Value> inputs;
    for (int i = 0; i < int(node.inputs.size()); ++i) {
      const Value v = node.inputs[std::size_t(i)];
      const bool image = std::ranges::find(images, i) != images.end();
      inputs.push_back(image ? last(v) : planar(v));
    }
    register_outputs(index, add(node, inputs, attrs), gives_image ? last_ : planar_);
    return true;
  }

  // Commutes with the transpose if every operand is channels last already or costs nothing to turn.
  bool convert_elementwise(int index) {
    const Node& node = source_.node(index);
    const Shape& shape = node.outputs[0].shape;
    if (!is_image(shape)) return false;
    bool saves_transpose = false;
    for (Value v : node.inputs) {
      const Shape& operand = source_.shape(v);
      const bool is_free = operand.elements() == 1 || (is_image(operand) && is_same_order(operand));
      if (!is_free && !last_[v].valid()) return false;
      saves_transpose |= last_[v].valid() && !planar_[v].valid();
    }
    if (!saves_transpose) return false;
    std::vector<Value> inputs;
    for (Value v : node.inputs) {
      inputs.push_back(is_image(source_.shape(v)) ? last(v) : planar(v));
    }
    register_outputs(index, add(node, inputs, node.attrs), last_);
    return true;
  }

  // A reduction adds up the same elements along the axes' new places, if those that are left keep
  // their order.
  bool convert_reduction(int index) {
    const Node& node = source_.node(index);
    const Value x = node.inputs[0];
    if (!last_[x].valid() || planar_[x].valid()) return false;
    ReduceAttrs attrs = node.attrs.as<ReduceAttrs>();
    const auto is_reduced = [&](int axis) {
      return std::ranges::find(attrs.axes, axis) != attrs.axes.end();
    };
    const bool keeps_order = is_reduced(1) || (is_reduced(2) && is_reduced(3));
    if (!attrs.keep_dims && !keeps_order) return false;
    for (std::int64_t& axis : attrs.axes) {
      axis = std::ranges::find(kToLast, axis) - kToLast.begin();
    }
    std::ranges::sort(attrs.axes);
    register_outputs(index, add(node, {last_[x]}, attrs), attrs.keep_dims ? last_ : planar_);
    return true;
  }

  bool is_last_alone(Value v) { return last_[v].valid() && !planar_[v].valid(); }

  bool convert_columns(int index, const std::vector<int>& images) {
    const Node& node = source_.node(index);
    const Shape& x = source_.shape(node.inputs[NormInput::kX]);
    const auto image_at = [&](int place) { return node.inputs[std::size_t(place)]; };
    if (!is_image(x) ||
        std::ranges::none_of(images, [&](int place) { return is_last_alone(image_at(place)); })) {
      return false;
    }
    std::vector<Value> inputs;
    for (Value v : node.inputs) inputs.push_back(planar_unless(images, int(inputs.size()), v));
    for (const int place : images) {
      const Value image = last(image_at(place));
      const NextName name(target_, fmt::format("{}.rows{}", node.name, place));
      inputs[std::size_t(place)] = ops::reshape(target_, image, {x.elements() / x[1], x[1]});
    }
    const Value made = add(node, inputs, node.attrs);
    register_outputs(index, made, planar_);
    planar_[{index, 0}] = {};
    const NextName name(target_, node.name + ".images");
    last_[{index, 0}] = ops::reshape(target_, made, stored_shape(x, true));
    return true;
  }
  Value planar_unless(const std::vector<int>& images, int place, Value v) {
    return std::ranges::find(images, place) != images.end() ? Value{} : planar(v);
  }

  // Inputs and outputs of four axes are images; those of three have a value for each place of one.
  bool convert_layer_norm(int index) {
    const Node& node = source_.node(index);
    const auto rank = [&](Value v) { return v.valid() ? source_.shape(v).rank() : 0; };
    if (std::ranges::none_of(node.inputs,
                             [&](Value v) { return rank(v) == 4 && is_last_alone(v); })) {
      return false;
    }
    std::vector<Value> inputs;
    for (Value v : node.inputs) {
      inputs.push_back(rank(v) == 4 ? last(v) : rank(v) == 3 ? turned_row(v) : planar(v));
    }
    const Value made = add(node, inputs, node.attrs);
    for (int port = 0; port < int(node.outputs.size()); ++port) {
      const int axes = node.outputs[std::size_t(port)].shape.rank();
      if (axes == 4) last_[{index, port}] = made.at(port);
      if (axes == 3) {
        const NextName name(target_, fmt::format("{}.planar{}", node.name, port));
        planar_[{index, port}] = ops::transpose(target_, made.at(port), {2, 0, 1});
      }
      if (axes < 3) planar_[{index, port}] = made.at(port);
    }
    return true;
  }

  // A value for each place of an image, (c, h, w), in the order (h, w, c).
  Value turned_row(Value old) {
    if (!rows_[old].valid()) {
      const Value form = planar(old);
      const NextName name(target_, source_.node(old).name + ".turned");
      rows_[old] = ops::transpose(target_, form, {1, 2, 0});
    }
    return rows_[old];
  }

  // A frame around images, and a part of images.
  bool convert_frame(int index) {
    const Node& node = source_.node(index);
    const Value x = node.inputs[0];
    if (!is_image(source_.shape(x)) || !is_last_alone(x)) return false;
    Attrs attrs;
    if (node.op == &kPad) {
      const PadAttrs& of = node.attrs.as<PadAttrs>();
      attrs = PadAttrs{turned_axes(of.before), turned_axes(of.after), of.value};
    } else {
      const SliceAttrs& of = node.attrs.as<SliceAttrs>();
      attrs = SliceAttrs{turned_axes(of.starts), turned_axes(of.sizes)};
    }
    register_outputs(index, add(node, {last(x)}, attrs), last_);
    return true;
  }

  // A value a channel, stretched over the places of images that convolutions or pooling read.
  bool convert_broadcast(int index) {
    const Node& node = source_.node(index);
    const Shape& from = source_.shape(node.inputs[0]);
    const Shape& to = node.outputs[0].shape;
    if (!has_spatial_ || !is_image(from) || !is_image(to) || !is_same_order(from)) return false;
    register_outputs(
        index, add(node, {last(node.inputs[0])}, BroadcastAttrs{stored_shape(to, true)}), last_);
    return true;
  }

  // A transpose of the old graph between the two orders is another name for a form.
  bool convert_transpose(int index) {
    const Node& node = source_.node(index);
    const Axes& axes = node.attrs.as<TransposeAttrs>().axes;
    const Value x = node.inputs[0];
    if (axes == kToLast && last_[x].valid()) {
      planar_[{index, 0}] = last_[x];
      return true;
    }
    if (axes == kToPlanar && planar_[x].valid()) {
      last_[{index, 0}] = planar_[x];
      return true;
    }
    return false;
  }

  Value add(const Node& node, std::vector<Value> inputs, const Attrs& attrs) {
    const NextName name(target_, node.name);
    return target_.add(*node.op, std::move(inputs), attrs);
  }

  void register_outputs(int index, Value first, Forms& forms) {
    for (int port = 0; port < int(source_.node(index).outputs.size()); ++port) {
      forms[{index, port}] = first.at(port);
    }
  }

  Value planar(Value old) {
    if (!old.valid()) return {};
    if (!planar_[old].valid()) {
      planar_[old] = turn(old, last_[old], kToPlanar, "planar", source_.shape(old));
    }
    return planar_[old];
  }

  Value last(Value old) {
    if (!old.valid()) return {};
    if (!last_[old].valid()) {
      last_[old] =
          turn(old, planar_[old], kToLast, "channels_last", stored_shape(source_.shape(old), true));
    }
    return last_[old];
  }

  Value turn(Value old, Value from, const Axes& axes, std::string_view form, const Shape& shape) {
    const NextName name(target_, fmt::format("{}.{}", source_.node(old).name, form));
    return is_same_order(source_.shape(old)) ? ops::reshape(target_, from, shape)
                                             : ops::transpose(target_, from, axes);
  }

  const Graph& source_;
  Graph target_;
  Forms planar_, last_, rows_;
  bool has_spatial_ = false;
};

}  // namespace

Graph to_channels_last(const Graph& graph) { return Converter(graph).run(); }

}  // namespace keel
