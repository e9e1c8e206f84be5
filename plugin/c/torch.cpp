// keel/norm.h for PyTorch: kernels of its dispatcher for CPUs and GPUs, by LibTorch's stable C
// interface.
// keel_norms.torch declares the ops (_ops.py) and asks for their kernels here; without this library
// it has kernels in Python that do the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "plugin/c/torch_pages.h"
#include "plugin/c/torch_plans.h"

namespace keel::plugin::torch {
namespace {

// More ops than keel has. A kernel of the dispatcher is told only its arguments, so every op needs
// a function of its own.
constexpr std::size_t kMaxOps = 64;

// More inputs, and more outputs, than an op has.
constexpr std::size_t kMaxArrays = 16;

struct Op {
  std::string name;
  bool needs_first;  // the first input is a Tensor, not a Tensor?
};
Op ops[kMaxOps];

// PyTorch's threads as keel's.
void share(void*, std::int64_t blocks, void (*work)(void*, std::int64_t, std::int64_t),
           void* argument) {
  struct Blocks {
    void (*work)(void*, std::int64_t, std::int64_t);
    void* argument;
  } body{work, argument};
  const auto run = [](std::int64_t first, std::int64_t last, void* of) {
    const auto& blocks_of = *static_cast<const Blocks*>(of);
    blocks_of.work(blocks_of.argument, first, last);
  };
  KEEL_TORCH(torch_parallel_for, 0, blocks, 1, run, &body);
}

// PyTorch's threads, or its current stream of a GPU.
keel_executor executor(const Place& place) {
  if (is_cuda(place)) return {nullptr, nullptr, 1, current_stream(place.index)};
  std::uint32_t threads = 1;
  KEEL_TORCH(torch_get_num_threads, &threads);
  return {share, nullptr, std::int32_t(threads), nullptr};
}

std::string text_of(const Place& place) {
  if (is_cuda(place)) return "cuda:" + std::to_string(place.index);
  static const std::int32_t cpu = functions().aoti_torch_device_type_cpu();
  return place.type == cpu ? "cpu" : "another device";
}

// keel's kernels for GPUs read four floats at a time.
std::uintptr_t alignment_on(const Place& place) { return is_cuda(place) ? 16 : 1; }

// The arguments of an op: its inputs by place, then the attributes. The arrays have a fixed size,
// here and below, because a call should take no longer than its kernel.
struct Arguments {
  std::array<Tensor, kMaxArrays> inputs;
  std::array<const std::int64_t*, kMaxArrays> strides{};  // null: contiguous
  std::size_t count;
  std::string attributes;
  Place place;

  Arguments(const Op& op, const Value* stack, std::uint64_t arguments) : count(arguments - 1) {
    for (std::size_t i = 0; i < count; ++i) {
      inputs[i] = i == 0 && op.needs_first ? take_tensor(stack[i]) : take_optional(stack[i]);
    }
    take_text(stack[count], attributes);
    find_place(op);
  }

  // Has the plan read inputs in place where it takes their strides, and replaces the others that it
  // cannot read by copies.
  void make_readable(const keel_plan* plan) {
    const std::uintptr_t alignment = alignment_on(place);
    for (std::size_t i = 0; i < count; ++i) {
      if (!inputs[i]) continue;
      const bool has_strides = !is_contiguous(inputs[i]);
      if (has_strides && keel_plan_takes_strides(plan, std::int32_t(i), strides_of(inputs[i]))) {
        strides[i] = strides_of(inputs[i]);
      } else {
        inputs[i] = contiguous(std::move(inputs[i]), place, alignment);
      }
    }
  }

  bool has_strides() const {
    return std::ranges::any_of(strides, [](const auto* of) { return of != nullptr; });
  }

  keel_device device() const {
    return is_cuda(place) ? keel_device{KEEL_DEVICE_CUDA, place.index}
                          : keel_device{KEEL_DEVICE_CPU, 0};
  }

 private:
  // All lie where the first does.
  void find_place(const Op& op) {
    const Tensor* first = nullptr;
    for (const Tensor& input : inputs) {
      if (!input) continue;
      const Place own = place_of(input);
      if (first == nullptr) place = own, first = &input;
      if (own == place) continue;
      throw std::invalid_argument("[" + op.name + "] expected all tensors on one device, got " +
                                  text_of(place) + " and " + text_of(own));
    }
  }
};

// Runs a plan on its inputs and gives its outputs.
std::array<Tensor, kMaxArrays> outputs_of(const Planned& planned, const Arguments& given) {
  const Place& place = given.place;
  std::array<const void*, kMaxArrays> from{};
  for (std::size_t i = 0; i < given.count; ++i) {
    if (given.inputs[i]) from[i] = address(given.inputs[i]);
  }
  std::array<Tensor, kMaxArrays> outputs;
  std::array<void*, kMaxArrays> to{};
  const keel_executor runner = executor(place);
  for (std::size_t j = 0; j < planned.outputs.size(); ++j) {
    outputs[j] = empty(planned.outputs[j].form, place);
    to[j] = mutable_address(outputs[j]);
    if (!is_cuda(place)) ready_pages(to[j], planned.outputs[j].bytes, runner);
  }
  Tensor workspace;  // PyTorch aligns to 64 bytes
  if (planned.workspace > 0) {
    static const std::int32_t u8 = functions().aoti_torch_dtype_uint8();
    workspace = empty({u8, 1, &planned.workspace}, place);
  }
  const keel_arrays arrays{from.data(), to.data(), given.strides.data(), nullptr};
  void* const room = workspace ? mutable_address(workspace) : nullptr;
  const keel_plan* const plan = planned.plan.get();
  const int status = given.has_strides()
                         ? keel_plan_run_strided(plan, &arrays, room, &runner)
                         : keel_plan_run(plan, from.data(), to.data(), room, &runner);
  if (status != KEEL_OK) throw std::invalid_argument(keel_error());
  return outputs;
}

void run(const Op& op, Value* stack, std::uint64_t arguments, std::uint64_t expected) {
  if (arguments > kMaxArrays || expected > kMaxArrays) throw std::length_error("too many arrays");
  Arguments given(op, stack, arguments);
  const auto planned = plan_for(
      {op.name.c_str(), given.attributes, given.device(), {given.inputs.data(), given.count}});
  if (planned->outputs.size() != expected) {
    throw std::invalid_argument("keel_norms: " + op.name + " was declared with other outputs");
  }
  given.make_readable(planned->plan.get());
  auto outputs = outputs_of(*planned, given);
  for (std::size_t j = 0; j < expected; ++j) stack[j] = outputs[j].release();
}

// Whether is_one(number) for all numbers of a tensor.
template <class Number, class Test>
bool all_of(const Tensor& tensor, const Form& form, const Test& is_one) {
  const auto* numbers = static_cast<const Number*>(address(tensor));
  std::int64_t count = 1;
  for (std::int64_t axis = 0; axis < form.rank; ++axis) count *= form.sizes[axis];
  return std::all_of(numbers, numbers + count, is_one);
}

// A 16-bit number is infinite or NaN where all bits of its exponent are set.
auto has_other_exponent(std::uint16_t mask) {
  return [mask](std::uint16_t bits) { return (bits & mask) != mask; };
}

// Integers are finite.
bool is_finite(const Tensor& tensor) {
  static const std::int32_t f16 = functions().aoti_torch_dtype_float16();
  static const std::int32_t bf16 = functions().aoti_torch_dtype_bfloat16();
  static const std::int32_t f32 = functions().aoti_torch_dtype_float32();
  static const std::int32_t f64 = functions().aoti_torch_dtype_float64();
  const auto finite = [](auto number) { return std::isfinite(number); };
  const Form form = form_of(tensor);
  if (form.dtype == f32) return all_of<float>(tensor, form, finite);
  if (form.dtype == f64) return all_of<double>(tensor, form, finite);
  if (form.dtype == f16) return all_of<std::uint16_t>(tensor, form, has_other_exponent(0x7c00));
  if (form.dtype == bf16) return all_of<std::uint16_t>(tensor, form, has_other_exponent(0x7f80));
  return true;
}

// The value as a state of the type of `state` holds it.
Tensor as_held(Tensor value, const Tensor& state) {
  Form form = form_of(value);
  const std::int32_t type = form_of(state).dtype;
  const Place place = place_of(value);
  if (form.dtype == type) return contiguous(std::move(value), place, 1);
  form.dtype = type;
  Tensor rounded = empty(form, place);
  KEEL_TORCH(aoti_torch_copy_, rounded.get(), value.get(), 0);
  return rounded;
}

// commit(Tensor(a!)[] states, Tensor[] following): writes the following values into the states, all
// or, where a number is not finite in the type of its state, none.
void commit(Value* stack, std::uint64_t, std::uint64_t) {
  const std::vector<Tensor> states = take_list(stack[0]);
  std::vector<Tensor> following = take_list(stack[1]);
  if (states.size() != following.size()) {
    throw std::invalid_argument("commit: expected a value for each state");
  }
  bool moves = true;
  for (std::size_t i = 0; i < states.size(); ++i) {
    following[i] = as_held(std::move(following[i]), states[i]);
    moves = moves && is_finite(following[i]);
  }
  for (std::size_t i = 0; moves && i < states.size(); ++i) {
    KEEL_TORCH(aoti_torch_copy_, states[i].get(), following[i].get(), 0);
  }
}

template <std::size_t Place>
void boxed(Value* stack, std::uint64_t inputs, std::uint64_t outputs) {
  run(ops[Place], stack, inputs, outputs);
}

template <std::size_t... Places>
BoxedKernel kernel_of(std::size_t place, std::index_sequence<Places...>) {
  static constexpr BoxedKernel kernels[] = {boxed<Places>...};
  return kernels[place];
}

// A library of the dispatcher for a kind of devices, with the kernels of all ops. It lives as long
// as the process.
LibraryObject* enter(const char* devices, std::size_t count) {
  LibraryObject* library = nullptr;
  KEEL_TORCH(aoti_torch_library_init_impl, "keel_norms", devices, __FILE__, __LINE__, &library);
  for (std::size_t i = 0; i < count; ++i) {
    KEEL_TORCH(torch_library_impl, library, ops[i].name.c_str(),
               kernel_of(i, std::make_index_sequence<kMaxOps>()), kVersion);
  }
  return library;
}

// Registers the kernels. Throws std::runtime_error.
void enter_kernels(const char* const* names, std::size_t count) {
  if (const char* missing = find_functions()) {
    throw std::runtime_error(std::string("PyTorch has no ") + missing);
  }
  if (count > kMaxOps) throw std::runtime_error("too many ops");
  for (std::size_t i = 0; i < count; ++i) {
    ops[i] = {names[i], !std::string_view(names[i]).ends_with("_backward")};
  }
  KEEL_TORCH(torch_library_impl, enter("CPU", count), "commit", commit, kVersion);
  enter("CUDA", count);
}

}  // namespace
}  // namespace keel::plugin::torch

// Enters the kernels of keel_norms::NAME for `count` names, on CPUs and GPUs, and that of
// keel_norms::commit on CPUs into the dispatcher of the PyTorch that is loaded. Returns nullptr, or
// why it could not; the text stays valid. To be called once.
extern "C" KEEL_API const char* keel_norm_torch(const char* const* names, std::int32_t count) {
  static std::string failure;
  try {
    keel::plugin::torch::enter_kernels(names, std::size_t(count));
    return nullptr;
  } catch (const std::exception& error) {
    failure = error.what();
    return failure.c_str();
  }
}
