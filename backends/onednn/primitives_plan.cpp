#include "backends/onednn/primitives_plan.h"

#include <string_view>

#include "backends/onednn/threads.h"

namespace keel::onednn {
namespace {

using DnnlType = dnnl::memory::data_type;

const dnnl::stream& cpu_stream() {
  static const dnnl::stream stream(cpu_engine());
  return stream;
}

Dims dims_of(const Shape& shape) { return {shape.sizes().begin(), shape.sizes().end()}; }

// A slope for PReLU; memory objects want a pointer that is not const.
void* zero() {
  alignas(kAlignment) static float value = 0;
  return &value;
}

void* address(const Place& place, const Binding& binding) {
  switch (place.kind) {
    case Place::kInput:
      return binding.inputs[std::size_t(place.index)].data;
    case Place::kOutput:
      return binding.outputs[std::size_t(place.index)].data;
    case Place::kWorkspace:
      return static_cast<std::byte*>(binding.workspace) + place.index;
    case Place::kZero:
      return zero();
  }
  return nullptr;
}

void apply_relu(const TensorRef& y) {
  float* data = y.as<float>();
  parallel_range(y.elements(), kBlockElements, [data](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) data[i] = data[i] <= 0 ? 0 : data[i];
  });
}

const char* status_text(dnnl_status_t status) {
  switch (status) {
    case dnnl_out_of_memory:
      return "out of memory";
    case dnnl_invalid_arguments:
      return "invalid arguments";
    case dnnl_unimplemented:
      return "unimplemented";
    default:
      return "runtime error";
  }
}

}  // namespace

std::string library_version() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

Desc image(const Shape& sizes, bool channels_last, DnnlType type) {
  using Tag = dnnl::memory::format_tag;
  return {dims_of(sizes), type, channels_last ? Tag::acdb : Tag::abcd};
}

Desc any_order(const Shape& sizes, DnnlType type) {
  return {dims_of(sizes), type, dnnl::memory::format_tag::any};
}

Desc vector_desc(std::int64_t size) {
  return {Dims{size}, DnnlType::f32, dnnl::memory::format_tag::a};
}

dnnl::primitive_attr attributes(Relu relu) {
  dnnl::primitive_attr result;
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (relu == Relu::kFused) {
    dnnl::post_ops operations;
    operations.append_prelu(0);
    // PReLU leaves -0 where x is negative; -0 + 0 is 0, as in the ReLU of other kernels.
    operations.append_eltwise(dnnl::algorithm::eltwise_linear, 1, 0);
    result.set_post_ops(operations);
  }
  return result;
}

bool splits_when_run(const std::string& implementation) {
  return implementation.find("gemm") != std::string::npos;
}

Relu relu_for(const std::string& implementation) {
  return splits_when_run(implementation) ? Relu::kApart : Relu::kFused;
}

// A plan bound to addresses. The arguments are laid out for oneDNN's C interface, which takes them
// as they are; its C++ interface would build a map on every call.
class Plan::Execution {
 public:
  Execution(const Plan& plan, const Binding& binding) : relu_apart_(plan.relu_apart_) {
    if (relu_apart_) y_ = binding.outputs[0];
    for (const Plan::Step& step : plan.steps_) {
      Call& call = calls_.emplace_back();
      call.primitive = step.primitive;
      call.splits_when_run = step.splits_when_run;
      for (const Argument& argument : step.arguments) {
        dnnl::memory memory(argument.desc, cpu_engine(), address(argument.place, binding));
        call.arguments.push_back({argument.id, memory.get()});
        call.memories.push_back(std::move(memory));
      }
    }
  }

  // The approximate memory of one program of that plan: without the primitives, which all programs
  // share.
  static std::int64_t bytes(const Plan& plan) {
    constexpr std::int64_t kMemoryObject = 1000;  // of oneDNN 3.2
    std::int64_t bytes = sizeof(Execution);
    for (const Plan::Step& step : plan.steps_) {
      constexpr std::int64_t kEach = kMemoryObject + sizeof(dnnl::memory) + sizeof(dnnl_exec_arg_t);
      bytes += std::int64_t(sizeof(Call)) + std::ssize(step.arguments) * kEach;
    }
    return bytes;
  }

  void run() const {
    // Scratch memory is sized for the concurrency of creation, so more threads may not run it.
    const bool too_many = threads_entered() > kPrimitiveConcurrency;
    for (const Call& call : calls_) {
      if (too_many || call.splits_when_run) {
        at_primitive_concurrency([&call] { call.run(); });
      } else {
        call.run();
      }
    }
    if (relu_apart_) apply_relu(y_);
  }

 private:
  struct Call {
    void run() const {
      const dnnl_status_t status = dnnl_primitive_execute(primitive.get(), cpu_stream().get(),
                                                          int(arguments.size()), arguments.data());
      check(status == dnnl_success, ErrorKind::kMemory, "oneDNN: dnnl_primitive_execute: {}",
            status_text(status));
    }
    dnnl::primitive primitive;
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
    bool splits_when_run = false;
  };
  std::vector<Call> calls_;
  bool relu_apart_;
  TensorRef y_;
};

void Plan::append(Step step, const Desc& scratch, Relu relu) {
  if (scratch.get_size() > 0) {
    step.arguments.push_back({DNNL_ARG_SCRATCHPAD, scratch, reserve(scratch)});
  }
  if (relu == Relu::kFused) {
    const auto rank = std::size_t(step.arguments.front().desc.get_ndims());
    const Desc slope(Dims(rank, 1), DnnlType::f32, Dims(rank, 1));
    step.arguments.push_back(
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_WEIGHTS, slope, {Place::kZero}});
  }
  relu_apart_ |= relu == Relu::kApart;
  steps_.push_back(std::move(step));
}

Place Plan::reserve(const Desc& desc) {
  constexpr auto kUnit = std::int64_t(kAlignment);
  const Place place{Place::kWorkspace, workspace_};
  workspace_ += (std::int64_t(desc.get_size()) + kUnit - 1) / kUnit * kUnit;
  return place;
}

void Plan::reorder(const Desc& from, Place from_place, const Desc& to, Place to_place) {
  const auto describe = [&](const dnnl::primitive_attr& attributes) {
    return dnnl::reorder::primitive_desc(cpu_engine(), from, cpu_engine(), to, attributes);
  };
  add(describe, false, [&](const auto&) {
    return std::vector<Argument>{{DNNL_ARG_FROM, from, from_place}, {DNNL_ARG_TO, to, to_place}};
  });
}

Prepared Plan::finish() && {
  const std::int64_t workspace = workspace_, holds = Execution::bytes(*this);
  auto plan = std::make_shared<const Plan>(std::move(*this));
  auto bind = [plan](const Binding& binding) -> Kernel {
    auto execution = std::make_shared<const Execution>(*plan, binding);
    return [execution] { execution->run(); };
  };
  return {bind, workspace, {}, holds};
}

// Primitives are not cached here: oneDNN keeps the last 1024 by op, sizes and concurrency, and
// hands one out again in a few microseconds.
Prepared make_plan(const std::function<void(Plan&)>& fill) {
  Plan plan;
  try {
    with_primitive_concurrency([&] { fill(plan); });
  } catch (const dnnl::error& error) {
    const bool is_refused =
        error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments;
    if (is_refused) return refuse(fmt::format("oneDNN {}: {}", library_version(), error.what()));
    const bool is_memory = error.status == dnnl_out_of_memory;
    fail(is_memory ? ErrorKind::kMemory : ErrorKind::kBackendMissing, "oneDNN {}: {}: {}",
         library_version(), error.what(), status_text(error.status));
  }
  return std::move(plan).finish();
}

}  // namespace keel::onednn
