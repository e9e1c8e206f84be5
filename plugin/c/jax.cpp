// keel/norm.h for JAX: a handler of XLA's foreign function interface that runs any op of keel. It
// needs XLA's headers, which come with jaxlib, and none of XLA's symbols.
//
// Arguments are the inputs that are given, results all outputs. Attributes:
//   op, attributes     texts, as a keel_request has them
//   places             for each input of the op the number of its argument; -1: absent
//   ranks              the rank of each argument for one call of the op
// Arrays may have more axes in front, which vmap adds: the op then runs for each element of these
// axes by itself. An argument whose axis in front has the size 1 is the same for all elements of
// it.
#include <xla/ffi/api/ffi.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugin/c/keel/norm.h"

namespace {

namespace ffi = xla::ffi;
using Sizes = ffi::Span<const std::int64_t>;

// Blocks that the caller and the threads of XLA's pool take, one range after the other. The caller
// waits only for ranges that a thread has begun, so a pool without a free thread cannot stop it.
class Ranges {
 public:
  using Work = void (*)(void* argument, std::int64_t first, std::int64_t last);
  Ranges(Work work, void* argument, std::int64_t blocks, std::int64_t count)
      : work_(work), argument_(argument), blocks_(blocks), count_(count) {}

  // Takes ranges until none is left.
  void take() {
    for (std::int64_t i = next_++; i < count_; i = next_++) {
      work_(argument_, blocks_ * i / count_, blocks_ * (i + 1) / count_);
      done_.fetch_add(1);
      done_.notify_all();
    }
  }
  void wait() {
    for (std::int64_t done = done_; done != count_; done = done_) done_.wait(done);
  }

 private:
  Work work_;
  void* argument_;
  std::int64_t blocks_, count_;
  std::atomic<std::int64_t> next_ = 0, done_ = 0;
};

// The run() of a keel_executor whose context is XLA's pool.
void share(void* pool, std::int64_t blocks, Ranges::Work work, void* argument) {
  auto& threads = *static_cast<ffi::ThreadPool*>(pool);
  const std::int64_t count = std::min(blocks, threads.num_threads());
  // A task that starts late finds no range left, but must still find the object.
  const auto ranges = std::make_shared<Ranges>(work, argument, blocks, count);
  for (std::int64_t i = 1; i < count; ++i) threads.Schedule([ranges] { ranges->take(); });
  ranges->take();
  ranges->wait();
}

// An array of all elements of the axes in front.
struct Array {
  char* data = nullptr;
  std::int32_t dtype = KEEL_ABSENT;
  Sizes front, sizes;
  std::int64_t bytes = 0;  // of one element

  keel_type type() const { return {dtype, std::int32_t(sizes.size()), sizes.begin()}; }
  // The address for the element `index` of the axes in front, whose sizes are `all`.
  char* at(std::int64_t index, Sizes all) const {
    std::int64_t place = 0, stride = 1;
    for (std::size_t axis = all.size(); axis-- > 0; index /= all[axis]) {
      if (front[axis] > 1) place += index % all[axis] * stride;
      stride *= front[axis];
    }
    return data + place * bytes;
  }
};

// Throws std::invalid_argument for a type that keel does not have.
std::int32_t dtype_of(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::F32:
      return KEEL_F32;
    case ffi::DataType::F64:
      return KEEL_F64;
    case ffi::DataType::S32:
      return KEEL_I32;
    case ffi::DataType::U8:
      return KEEL_U8;
    default:  // not KEEL_ABSENT, which would leave the array out
      throw std::invalid_argument("keel_norms: an array has an element type that keel lacks");
  }
}

Array array_of(const ffi::AnyBuffer& buffer, std::size_t rank) {
  const Sizes all = buffer.dimensions();
  const std::size_t axes = all.size() - rank;
  Array array{static_cast<char*>(buffer.untyped_data()), dtype_of(buffer.element_type()),
              Sizes(all.begin(), axes), Sizes(all.begin() + axes, rank)};
  array.bytes = std::int64_t(ffi::ByteWidth(buffer.element_type()));
  for (const std::int64_t size : array.sizes) array.bytes *= size;
  return array;
}

struct Free {
  void operator()(keel_plan* plan) const { keel_plan_free(plan); }
};

// Plans by op, attributes and types. Shapes are part of a compiled program, so there are few.
keel_plan* plan_for(std::string_view op, std::string_view attributes,
                    const std::vector<keel_type>& types) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<keel_plan, Free>, std::less<>> plans;
  std::string key = std::string(op) + '\n' + std::string(attributes) + '\n';
  for (const keel_type& type : types) {
    key += char('a' + type.dtype + 1);
    key.append(reinterpret_cast<const char*>(type.sizes), sizeof(std::int64_t) * type.rank);
    key += '\n';
  }
  const std::lock_guard lock(mutex);
  std::unique_ptr<keel_plan, Free>& plan = plans[key];
  if (plan == nullptr) {
    keel_plan* made = nullptr;
    const std::string name(op), text(attributes);
    const keel_request request{
        name.c_str(), text.c_str(), {KEEL_DEVICE_CPU, 0}, std::int32_t(types.size()), types.data()};
    keel_norm_prepare(&request, &made);
    plan.reset(made);
  }
  return plan.get();
}

struct AlignedDelete {
  void operator()(char* memory) const { ::operator delete(memory, std::align_val_t(64)); }
};

// One op over all elements of the axes in front.
struct Call {
  const keel_plan* plan = nullptr;
  std::vector<Array> inputs, outputs;
  Sizes front;
  std::mutex mutex;
  std::string error;  // what the first run that failed said

  void fail(const char* text) {
    const std::lock_guard lock(mutex);
    if (error.empty()) error = text;
  }

  // Throws bad_alloc.
  void run(std::int64_t first, std::int64_t last, const keel_executor* executor) {
    const auto room = std::size_t(keel_plan_workspace(plan));
    const std::unique_ptr<char, AlignedDelete> workspace(
        room > 0 ? static_cast<char*>(::operator new(room, std::align_val_t(64))) : nullptr);
    std::vector<const void*> from(inputs.size());
    std::vector<void*> to(outputs.size());
    for (std::int64_t i = first; i < last; ++i) {
      for (std::size_t k = 0; k < from.size(); ++k) {
        from[k] = inputs[k].data == nullptr ? nullptr : inputs[k].at(i, front);
      }
      for (std::size_t k = 0; k < to.size(); ++k) to[k] = outputs[k].at(i, front);
      // The text is that of this thread.
      if (keel_plan_run(plan, from.data(), to.data(), workspace.get(), executor) != KEEL_OK) {
        fail(keel_error());
      }
    }
  }
};

// Runs the op on XLA's threads: one element after the other if there is only one thread, otherwise
// several elements at once.
void run_on(ffi::ThreadPool& pool, Call& call) {
  std::int64_t elements = 1;
  for (const std::int64_t size : call.front) elements *= size;
  const auto threads = std::int32_t(std::max<std::int64_t>(1, pool.num_threads()));
  if (elements > 1 && threads > 1) {
    return share(
        &pool, elements,
        [](void* of, std::int64_t first, std::int64_t last) {
          Call& part = *static_cast<Call*>(of);
          try {
            part.run(first, last, nullptr);
          } catch (const std::bad_alloc&) {
            part.fail("keel_norms: out of memory");
          } catch (...) {  // the pool's threads know no exceptions
            part.fail("keel_norms: an unknown error");
          }
        },
        &call);
  }
  const keel_executor executor{share, &pool, threads, nullptr};
  call.run(0, elements, &executor);
}

// Throws std::invalid_argument where an array is no output of the plan: a kernel would write
// beyond it.
void check_output(const keel_plan* plan, std::size_t place, const ffi::AnyBuffer& buffer) {
  const keel_type type = keel_plan_output(plan, std::int32_t(place));
  const Sizes all = buffer.dimensions();
  const bool fits = all.size() >= std::size_t(type.rank) &&
                    dtype_of(buffer.element_type()) == type.dtype &&
                    std::equal(type.sizes, type.sizes + type.rank, all.end() - type.rank);
  if (!fits) {
    throw std::invalid_argument("keel_norms: result " + std::to_string(place) +
                                " has another type or shape than the op gives");
  }
}

// Finds the arrays of a call. Returns false where keel refuses the op, as keel_error() says.
bool read(Call& call, const ffi::RemainingArgs& args, const ffi::RemainingRets& rets,
          const ffi::Dictionary& told) {
  const Sizes ranks = told.get<Sizes>("ranks").value();
  const Sizes places = told.get<Sizes>("places").value();
  std::vector<keel_type> types;
  for (const std::int64_t place : places) {
    const auto number = std::size_t(place);
    call.inputs.push_back(
        place < 0 ? Array{}
                  : array_of(args.get<ffi::AnyBuffer>(number).value(), std::size_t(ranks[number])));
    types.push_back(call.inputs.back().type());
  }
  call.plan = plan_for(told.get<std::string_view>("op").value(),
                       told.get<std::string_view>("attributes").value(), types);
  if (call.plan == nullptr) return false;
  if (rets.size() != std::size_t(keel_plan_outputs(call.plan))) {
    throw std::invalid_argument("keel_norms: the op has another number of results");
  }
  for (std::size_t k = 0; k < rets.size(); ++k) {
    check_output(call.plan, k, *rets.get<ffi::AnyBuffer>(k).value());
    const auto rank = std::size_t(keel_plan_output(call.plan, std::int32_t(k)).rank);
    call.outputs.push_back(array_of(*rets.get<ffi::AnyBuffer>(k).value(), rank));
  }
  call.front = call.outputs[0].front;
  return true;
}

ffi::Error run(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
               ffi::Dictionary told) try {
  Call call;
  if (!read(call, args, rets, told)) return {ffi::ErrorCode::kInvalidArgument, keel_error()};
  run_on(pool, call);
  if (call.error.empty()) return ffi::Error::Success();
  return {ffi::ErrorCode::kInternal, call.error};
} catch (const std::bad_alloc&) {
  return {ffi::ErrorCode::kResourceExhausted, "keel_norms: out of memory"};
} catch (const std::invalid_argument& error) {
  return {ffi::ErrorCode::kInvalidArgument, error.what()};
} catch (const std::exception& error) {
  return {ffi::ErrorCode::kInternal, error.what()};
} catch (...) {  // XLA calls this as C
  return {ffi::ErrorCode::kInternal, "keel_norms: an unknown error"};
}

}  // namespace

extern "C" KEEL_API XLA_FFI_Error* keel_norm_jax(XLA_FFI_CallFrame* frame);

XLA_FFI_DEFINE_HANDLER(
    handler, run, ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().RemainingArgs().RemainingRets().Attrs());

XLA_FFI_Error* keel_norm_jax(XLA_FFI_CallFrame* frame) { return handler(frame); }
