#include "plugin/c/request.h"

namespace keel::plugin {
namespace {

static_assert(KEEL_F32 == int(DType::kF32) && KEEL_F64 == int(DType::kF64) &&
              KEEL_BF16 == int(DType::kBF16) && KEEL_I32 == int(DType::kI32) &&
              KEEL_U8 == int(DType::kU8));

std::optional<TensorType> read_type(const keel_type& type, int place) {
  if (type.dtype == KEEL_ABSENT) return std::nullopt;
  check(type.dtype == KEEL_F32 || type.dtype == KEEL_F64 || type.dtype == KEEL_BF16 ||
            type.dtype == KEEL_I32 || type.dtype == KEEL_U8,
        ErrorKind::kUsage, "input {}: expected an element type of enum keel_dtype, got {}", place,
        type.dtype);
  check(type.rank >= 0 && type.rank <= Shape::kMaxRank, ErrorKind::kUsage,
        "input {}: expected 0 to {} axes, got {}", place, Shape::kMaxRank, type.rank);
  check(type.rank == 0 || type.sizes != nullptr, ErrorKind::kUsage,
        "input {}: expected the sizes of {} axes, got none", place, type.rank);
  for (int axis = 0; axis < type.rank; ++axis) {
    check(type.sizes[axis] >= 0, ErrorKind::kUsage, "input {}: expected sizes >= 0, got {}", place,
          type.sizes[axis]);
  }
  return TensorType{DType(type.dtype), Shape({type.sizes, std::size_t(type.rank)})};
}

}  // namespace

Request read_request(const keel_request& given) {
  check(given.op != nullptr, ErrorKind::kUsage, "op: expected a name, got none");
  check(given.count == 0 || given.inputs != nullptr, ErrorKind::kUsage,
        "inputs: expected {} types, got none", given.count);
  check(given.device.kind == KEEL_DEVICE_CPU || given.device.kind == KEEL_DEVICE_CUDA,
        ErrorKind::kUsage, "device: expected a kind of enum keel_device_kind, got {}",
        given.device.kind);
  Request request{given.op, given.attributes == nullptr ? "" : given.attributes, {}, 0};
  for (int i = 0; i < given.count; ++i) request.inputs.push_back(read_type(given.inputs[i], i));
  request.device = given.device.index;
  return request;
}

}  // namespace keel::plugin
