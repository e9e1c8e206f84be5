// A sequence of primitives that runs as one kernel; shared by the other primitives* files.
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
// The same sizes in the memory order that the primitive prefers.
Desc any_order(const Shape& sizes, dnnl::memory::data_type type = dnnl::memory::data_type::f32);
Desc vector_desc(std::int64_t size);

// The location of a primitive's argument.
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

// Whether an implementation decides only when it runs into how many parts it splits a sum.
bool splits_when_run(const std::string& implementation);

// How a primitive applies ReLU. oneDNN's own ReLU turns NaN into 0, which would hide a divergence
// from the loss. Its PReLU with slope 0 keeps NaN and is free in generated code, but takes most of
// the time of a convolution built on gemm: there ReLU is a separate pass.
enum class Relu { kNone, kFused, kApart };
dnnl::primitive_attr attributes(Relu relu);
// The best way for the implementation that oneDNN chose with kFused.
Relu relu_for(const std::string& implementation);

class Plan {
 public:
  // Appends the primitive that `describe(attributes)` describes, with the arguments that
  // `arguments(description)` lists, and its scratch memory. `splits`: it splits a sum when it runs,
  // though its implementation does not say so.
  template <class Describe, class Arguments>
  void add(const Describe& describe, bool relu, const Arguments& arguments, bool splits = false) {
    auto description = describe(attributes(relu ? Relu::kFused : Relu::kNone));
    const Relu how = relu ? relu_for(description.impl_info_str()) : Relu::kNone;
    if (how == Relu::kApart) description = describe(attributes(how));
    Step step{dnnl::primitive(description.get()), arguments(description),
              splits || splits_when_run(description.impl_info_str())};
    append(std::move(step), description.scratchpad_desc(), how);
  }
  // Reserves a tensor in the workspace, by which one primitive passes data to the next.
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

// Returns the plan that `fill` builds, under the concurrency for creating primitives. An oneDNN
// error becomes a refusal or an error of keel.
Prepared make_plan(const std::function<void(Plan&)>& fill);

}  // namespace keel::onednn
