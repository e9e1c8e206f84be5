// Primitives that run one after another, as a kernel: what the other primitives* files share.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "backends/onednn/primitives.h"
#include "backends/onednn/threads.h"

namespace keel::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

const dnnl::engine& cpu_engine();
// Attributes of a primitive whose scratch memory is part of the plan's workspace.
dnnl::primitive_attr plan_attributes();

// Sizes n, c, h, w (or o, c, kh, kw) stored in that order.
Desc planar(const Shape& sizes);
// Sizes n, c, h, w of an image in the memory order asked for.
Desc image(const Shape& sizes, bool channels_last,
           dnnl::memory::data_type type = dnnl::memory::data_type::f32);

// Where an argument of a primitive lies.
struct Place {
  enum Kind { kInput, kOutput, kWorkspace, kZero };
  Kind kind;
  std::int64_t index = 0;  // of the input or output, or bytes into the workspace
};
inline Place input(int i) { return {Place::kInput, i}; }
inline Place output(int j) { return {Place::kOutput, j}; }

struct Argument {
  int id;  // DNNL_ARG_*
  Desc desc;
  Place place;
};

class Plan {
 public:
  // Appends a primitive; its scratch memory is added to the arguments.
  template <class PrimitiveDesc>
  void add(const PrimitiveDesc& desc, std::vector<Argument> arguments) {
    append(dnnl::primitive(desc.get()), desc.scratchpad_desc(), std::move(arguments));
  }
  // A tensor in the workspace, for what one primitive hands to the next.
  Place reserve(const Desc& desc);
  // Appends a change of memory order, and returns where the result lies; none if nothing changes.
  Place reordered(Place from, const Desc& from_desc, const Desc& to_desc);
  void add_reorder(Place from, const Desc& from_desc, Place to, const Desc& to_desc);
  // Lets the primitive before it end in a ReLU.
  Prepared finish() &&;

 private:
  struct Step {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
  };
  class Execution;

  void append(dnnl::primitive primitive, const Desc& scratch, std::vector<Argument> arguments);

  std::vector<Step> steps_;
  std::int64_t workspace_ = 0;  // bytes
};

// Runs `fill` with a new plan, under the concurrency that primitives are created for; oneDNN's
// errors become a refusal or keel's own.
Prepared make_plan(const std::function<void(Plan&)>& fill);

}  // namespace keel::onednn
