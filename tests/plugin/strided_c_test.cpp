// keel/norm.h: arrays with strides are read and written exactly where these say, with the bits of
// contiguous ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <thread>

#include "tests/plugin/c_plan.h"
#include "tests/plugin/strided_arrays.h"

namespace keel::test::strided_c {
namespace {

// The names of the inputs and outputs of an op.
struct Names {
  std::vector<std::string> inputs, outputs;
};
std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
  return parts;
}
const Names& names_of(const std::string& op) {
  static const std::map<std::string, Names> names = [] {
    std::map<std::string, Names> all;
    for (const std::string& line : split(keel_norm_ops(), '\n')) {
      const std::vector<std::string> parts = split(line, '\t');
      all[parts[0]].inputs = split(parts[1], ',');
    }
    for (const std::string& line : split(keel_norm_facts(), '\n')) {
      const std::vector<std::string> parts = split(line, '\t');
      all[parts[0]].outputs = split(parts[1], ',');
    }
    return all;
  }();
  return names.at(op);
}

using Values = std::map<std::string, Tensor>;

// An op with the values of its inputs, by place.
struct OpCase {
  Asked asked;
  std::vector<Tensor> inputs;

  OpCase(const std::string& op, const std::string& attributes, const Values& values)
      : asked{op, attributes, {}, kHost} {
    for (const std::string& name : names_of(op).inputs) {
      const auto found = values.find(name);
      inputs.push_back(found == values.end() ? Tensor(DType::kF32, {0}) : found->second.clone());
      asked.inputs.push_back(inputs.back().type());
    }
  }
};

// A norm whose rows are the last axes of x. A parameter has a number for each of a row's elements,
// or is a single one.
struct NormCase {
  std::string name, attributes;
  int axes = 1;
  std::vector<std::string> parameters = {};
  bool has_single = false, is_backward_taken = true;
};
const NormCase kNorms[] = {
    {"layer_norm", "eps=1e-06", 1, {"gain", "bias"}},
    {"layer_norm", "axes=2 unbiased=true", 2, {"gain"}},
    {"layer_norm", "", 1},
    {"rms_norm", "", 1, {"gain", "bias"}},
    {"rms_norm", "offset=1 axes=2", 2, {"gain"}},
    {"ada_norm", "", 1},
    {"detach_norm", "", 1},
    {"detach_norm", "detach_mean=false", 1},
    {"detach_norm", "detach_variance=false", 1},
    {"scale_norm", "", 1, {"gain"}, true},
    {"group_scaling", "groups=2", 1},
    {"seed_norm", "", 1, {"gain", "a", "b"}, false, false},
};

Values values_of(const NormCase& norm, const Tensor& x, const Tensor& dy) {
  Values values;
  values["x"] = x.clone();
  values["dy"] = dy.clone();
  const Shape row(x.shape().sizes().last(std::size_t(norm.axes)));
  std::uint32_t stream = 7;
  for (const std::string& name : norm.parameters) {
    values[name] = drawn(norm.has_single ? Shape{1} : row, stream++);
  }
  const OpCase forward(norm.name, norm.attributes, values);
  std::vector<Tensor> outputs = run_once(forward.asked, forward.inputs);
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    values[names_of(norm.name).outputs[j]] = std::move(outputs[j]);
  }
  return values;
}

OpCase backward_of(const NormCase& norm, const Values& values) {
  const bool wants_dbias = values.count("bias") > 0;
  return {norm.name + "_backward", (wants_dbias ? "wants_dbias=true " : "") + norm.attributes,
          values};
}

// Threads that each take some of the blocks.
void share(void*, std::int64_t blocks, void (*work)(void*, std::int64_t, std::int64_t),
           void* argument) {
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 3; ++t) {
    threads.emplace_back(work, argument, blocks * t / 3, blocks * (t + 1) / 3);
  }
  for (std::thread& thread : threads) thread.join();
}
const keel_executor kThreads{share, nullptr, 3, nullptr};

// The arrays of a run, each with guards, and with strides that `strides_of` has for those of the
// shape of x.
class StridedRun {
 public:
  template <class StridesOf>
  StridedRun(const OpCase& op, const StridesOf& strides_of) : plan_(prepared(op.asked)) {
    const Shape& x = outputs_type(0).shape;
    for (const Tensor& input : op.inputs) {
      const bool has_rows = input.shape() == x;
      inputs_.emplace_back(input,
                           has_rows ? strides_of(input.shape(), false) : contiguous(input.shape()));
    }
    for (int j = 0; j < keel_plan_outputs(plan_.get()); ++j) {
      const TensorType type = outputs_type(j);
      outputs_.emplace_back(type, j == 0 ? strides_of(type.shape, true) : contiguous(type.shape));
    }
    workspace_ = AlignedBytes(keel_plan_workspace(plan_.get()));
  }

  int start(const keel_executor* executor = nullptr) {
    const std::vector<const std::int64_t*> of_inputs = strides(inputs_),
                                           of_outputs = strides(outputs_);
    std::vector<const void*> from;
    std::vector<void*> to;
    for (Guarded& input : inputs_) from.push_back(input.address());
    for (Guarded& output : outputs_) to.push_back(output.address());
    const keel_arrays arrays{from.data(), to.data(), of_inputs.data(), of_outputs.data()};
    return keel_plan_run_strided(plan_.get(), &arrays, workspace_.data(), executor);
  }
  std::vector<Guarded>& inputs() { return inputs_; }
  std::vector<Guarded>& outputs() { return outputs_; }

 private:
  TensorType outputs_type(int place) const {
    const keel_type type = keel_plan_output(plan_.get(), place);
    return {DType(type.dtype), Shape({type.sizes, std::size_t(type.rank)})};
  }
  static std::vector<const std::int64_t*> strides(const std::vector<Guarded>& arrays) {
    std::vector<const std::int64_t*> tables;
    for (const Guarded& array : arrays) tables.push_back(array.strides().data());
    return tables;
  }

  CPlan plan_;
  std::vector<Guarded> inputs_, outputs_;
  AlignedBytes workspace_;
};

// Runs an op on strided arrays: outputs have the bits of a contiguous run, and no other byte
// changes.
template <class StridesOf>
bool is_exact(const OpCase& op, const StridesOf& strides_of, const keel_executor* executor) {
  StridedRun run(op, strides_of);
  std::vector<Tensor> inputs;
  std::vector<std::vector<std::byte>> before;
  for (const Guarded& input : run.inputs()) {
    inputs.push_back(input.read());  // elements that share a place are equal
    before.push_back(input.bytes());
  }
  const std::vector<Tensor> expected = run_once(op.asked, inputs);
  std::vector<Guarded> after = run.outputs();
  for (std::size_t j = 0; j < expected.size(); ++j) {
    if (expected[j].elements() > 0) after[j].write(expected[j]);
  }
  expect_ok(run.start(executor));
  bool is_same = true;
  for (std::size_t i = 0; i < before.size(); ++i) is_same &= run.inputs()[i].bytes() == before[i];
  for (std::size_t j = 0; j < after.size(); ++j) {
    is_same &= run.outputs()[j].bytes() == after[j].bytes();
  }
  return is_same;
}

void check_layouts(const NormCase& norm, DType dtype, int count) {
  DrawnLayouts layouts(std::uint32_t(norm.attributes.size() + 31 * norm.name.size()));
  const auto strides_of = [&](const Shape& shape, bool is_output) {
    return layouts.strides(shape, norm.axes, !is_output);
  };
  for (int i = 0; i < count; ++i) {
    const Shape shape = layouts.shape(norm.axes);
    const Values values =
        values_of(norm, layouts.numbers(shape).to(dtype), layouts.numbers(shape).to(dtype));
    const keel_executor* executor = i % 8 == 0 ? &kThreads : nullptr;
    CAPTURE(norm.name);
    CAPTURE(norm.attributes);
    CAPTURE(shape.text());
    CAPTURE(i);
    CHECK(is_exact(OpCase(norm.name, norm.attributes, values), strides_of, executor));
    if (!norm.is_backward_taken) continue;
    CHECK(is_exact(backward_of(norm, values), strides_of, executor));
  }
}

// 500 layouts of a norm, shared out among its options.
void check_norm(const std::string& name) {
  const auto is_of_norm = [&](const NormCase& norm) { return norm.name == name; };
  const auto options = std::count_if(std::begin(kNorms), std::end(kNorms), is_of_norm);
  for (const NormCase& norm : kNorms) {
    if (is_of_norm(norm)) check_layouts(norm, DType::kF32, int(500 / options) + 1);
  }
}

#define KEEL_LAYOUTS_OF(name)                                                      \
  TEST_CASE("norm.h: 500 drawn layouts of " name " are read and written exactly" * \
            doctest::test_suite("slow")) {                                         \
    check_norm(name);                                                              \
  }
KEEL_LAYOUTS_OF("layer_norm")
KEEL_LAYOUTS_OF("rms_norm")
KEEL_LAYOUTS_OF("ada_norm")
KEEL_LAYOUTS_OF("detach_norm")
KEEL_LAYOUTS_OF("scale_norm")
KEEL_LAYOUTS_OF("group_scaling")
KEEL_LAYOUTS_OF("seed_norm")
#undef KEEL_LAYOUTS_OF

TEST_CASE("norm.h: drawn layouts of bf16 are read and written exactly") {
  for (const NormCase& norm : kNorms) check_layouts(norm, DType::kBF16, 20);
}

// Heads of a tensor (samples, steps, heads, width) in the order (samples, heads, steps, width),
// within a projection that has more columns.
void check_heads(const NormCase& norm, const Shape& x, std::int64_t more) {
  CAPTURE(norm.name);
  CAPTURE(x.text());
  const std::int64_t width = x[3], step = x[1] * width + more;
  const Strides heads{x[2] * step, width, step, 1};
  const auto strides_of = [&](const Shape&, bool) { return heads; };
  const Values values = values_of(norm, drawn(x, 1), drawn(x, 2));
  CHECK(is_exact(OpCase(norm.name, norm.attributes, values), strides_of, &kThreads));
  if (!norm.is_backward_taken) return;
  CHECK(is_exact(backward_of(norm, values), strides_of, &kThreads));
}

TEST_CASE("norm.h: heads of many rows, and of every width of a kernel's groups, keep their bits" *
          doctest::test_suite("slow")) {
  for (const NormCase& norm : kNorms) {
    if (norm.axes != 1) continue;
    check_heads(norm, {2, 3, 71, 64}, 128);
    check_heads(norm, {1, 2, 9, 600}, 40);
    check_heads(norm, {1, 2, 3, 2050}, 0);
    check_heads(norm, {1, 2, 2, 16384}, 16);
  }
}

}  // namespace
}  // namespace keel::test::strided_c
