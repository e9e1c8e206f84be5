// Primitives that run one after another, as one kernel: what the other primitives* files share.
#pragma once

#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "backends/onednn/primitives.h"

namespace keel::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

const dnnl::engine& cpu_engine();

// Sizes n, c, h, w of an image (or o, c, kh, kw of weights) in the memory order asked for.
Desc image(const Shape& sizes, bool channels_last,
           dnnl::memory::data_type type = dnnl::memory::data_type::f32);
// The same sizes in the order that the primitive likes best.
Desc any_order(const Shape& sizes);
Desc vector_desc(std::int64_t size);

// Where an argument of a primitive lies.
struct Place {
  enum Kind { kInput, kOutput, kWorkspace, kZero };  // kZero: a constant 0
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

// Implementations that decide only when they run into how many parts they split a sum.
bool splits_when_run(const std::string& implementation);

// How a primitive ends in ReLU. oneDNN's own turns NaN into 0, which would hide a divergence from
// the loss. Its PReLU with a slope of 0 keeps NaN and costs nothing in generated code, but
// dominates a convolution built on gemm: there ReLU is a pass of its own.
enum class Relu { kNone, kFused, kApart };
dnnl::primitive_attr attributes(Relu relu);
// The best way for the implementation that was found with kFused.
Relu relu_for(const std::string& implementation);

class Plan {
 public:
  // Appends the primitive that `describe(attributes)` describes, with the arguments that
  // `arguments(description)` lists, and its scratch memory.
  template <class Describe, class Arguments>
  void add(const Describe& describe, bool relu, const Arguments& arguments) {
    auto description = describe(attributes(relu ? Relu::kFused : Relu::kNone));
    const Relu how = relu ? relu_for(description.impl_info_str()) : Relu::kNone;
    if (how == Relu::kApart) description = describe(attributes(how));
    Step step{dnnl::primitive(description.get()), arguments(description),
              splits_when_run(description.impl_info_str())};
    append(std::move(step), description.scratchpad_desc(), how);
  }
  // A tensor in the workspace, for what one primitive hands to the next.
  Place reserve(const Desc& desc);
  // Appends a copy from one memory order to another.
  void reorder(const Desc& from, Place from_place, const Desc& to, Place to_place);
  Prepared finish() &&;

 private:
  class Execution;
  struct Step {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
    bool splits_when_run;
  };

  void append(Step step, const Desc& scratch, Relu relu);

  std::vector<Step> steps_;
  std::int64_t workspace_ = 0;  // bytes
  bool relu_apart_ = false;     // a pass over output 0 at the end
};

// A plan that `fill` fills, under the concurrency that primitives are created for. oneDNN's errors
// become a refusal or keel's own.
Prepared make_plan(const std::function<void(Plan&)>& fill);

}  // namespace keel::onednn
