#include "plugin/c/torch_plans.h"

#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>

namespace keel::plugin::torch {
namespace {

// So many plans are kept; a program with more shapes makes them again.
constexpr std::size_t kKept = 1024;

struct DTypes {
  std::int32_t f32 = functions().aoti_torch_dtype_float32();
  std::int32_t f64 = functions().aoti_torch_dtype_float64();
  std::int32_t bf16 = functions().aoti_torch_dtype_bfloat16();
  std::int32_t i32 = functions().aoti_torch_dtype_int32();
  std::int32_t u8 = functions().aoti_torch_dtype_uint8();
};

const DTypes& dtypes() {
  static const DTypes numbers;
  return numbers;
}

std::int32_t to_keel(std::int32_t dtype) {
  const DTypes& known = dtypes();
  if (dtype == known.f32) return KEEL_F32;
  if (dtype == known.f64) return KEEL_F64;
  if (dtype == known.bf16) return KEEL_BF16;
  if (dtype == known.i32) return KEEL_I32;
  if (dtype == known.u8) return KEEL_U8;
  throw std::invalid_argument("expected float32, float64 or bfloat16, got another element type");
}

std::int32_t to_torch(std::int32_t dtype) {
  const DTypes& known = dtypes();
  const std::int32_t of[] = {known.f32, known.f64, known.bf16, known.i32, known.u8};
  return of[dtype];
}

std::int64_t bytes_of(const keel_type& type) {
  constexpr std::int64_t kBytes[] = {4, 8, 2, 4, 1};  // by keel_dtype
  std::int64_t bytes = kBytes[type.dtype];
  for (std::int32_t axis = 0; axis < type.rank; ++axis) bytes *= type.sizes[axis];
  return bytes;
}

template <class Number>
void append(std::string& key, const Number* numbers, std::int64_t count) {
  static_assert(std::has_unique_object_representations_v<Number>);
  key.append(reinterpret_cast<const char*>(numbers), sizeof(Number) * std::size_t(count));
}

// Writes the facts in which two equal requests agree.
void write_key(const Request& request, std::string& key) {
  key.assign(request.op);
  key += '\n';
  key += request.attributes;
  append(key, &request.device, 1);
  for (const Tensor& tensor : request.inputs) {
    key += '\n';
    if (!tensor) continue;
    const Form form = form_of(tensor);
    append(key, &form.dtype, 1);
    append(key, form.sizes, form.rank);
  }
}

std::shared_ptr<const Planned> made(const Request& request) {
  std::vector<keel_type> types;
  for (const Tensor& tensor : request.inputs) {
    keel_type type{KEEL_ABSENT, 0, nullptr};
    if (tensor) {
      const Form form = form_of(tensor);
      type = {to_keel(form.dtype), std::int32_t(form.rank), form.sizes};
    }
    types.push_back(type);
  }
  const keel_request asked{request.op, request.attributes.c_str(), request.device,
                           std::int32_t(types.size()), types.data()};
  keel_plan* plan = nullptr;
  if (keel_norm_prepare(&asked, &plan) != KEEL_OK) throw std::invalid_argument(keel_error());
  auto planned = std::make_shared<Planned>();
  planned->plan.reset(plan);
  planned->workspace = keel_plan_workspace(plan);
  for (std::int32_t j = 0; j < keel_plan_outputs(plan); ++j) {
    const keel_type type = keel_plan_output(plan, j);
    planned->outputs.push_back({{to_torch(type.dtype), type.rank, type.sizes}, bytes_of(type)});
  }
  return planned;
}

}  // namespace

std::shared_ptr<const Planned> plan_for(const Request& request) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::shared_ptr<const Planned>> plans;
  thread_local std::string key;
  write_key(request, key);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = plans.find(key); found != plans.end()) return found->second;
  }
  std::shared_ptr<const Planned> planned = made(request);
  const std::lock_guard lock(mutex);
  if (plans.size() >= kKept) plans.clear();
  return plans.try_emplace(key, std::move(planned)).first->second;
}

}  // namespace keel::plugin::torch
