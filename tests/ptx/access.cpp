// Loads and stores: every lane's address is checked before anything is touched.
#include <algorithm>
#include <bit>

#include "tests/ptx/block.h"
#include "tests/ptx/fault.h"
#include "tests/ptx/lane_op.h"
#include "tests/ptx/touch.h"

namespace keel::ptx {
namespace {

// The base address of each lane; the register that holds it has 4 or 8 bytes.
void addresses_of(const Warp& warp, const Instruction& i, int operand,
                  std::uint64_t (&all)[kLanes]) {
  const std::byte* const base = warp.at(i.place[std::size_t(operand)]);
  const bool is_wide = i.type[std::size_t(operand)] == Type::kDouble;
  for (int lane = 0; lane < kLanes; ++lane) {
    all[lane] = std::uint64_t(i.offset) +
                (is_wide ? reinterpret_cast<const std::uint64_t*>(base)[lane]
                         : std::uint64_t{reinterpret_cast<const std::uint32_t*>(base)[lane]});
  }
}

template <class Memory, class Register>
void read_element(std::byte* to, std::byte* const (&from)[kLanes], std::int64_t offset,
                  Lanes lanes) {
  Register made[kLanes]{};
  for (Lanes left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    Memory value;
    std::memcpy(&value, from[lane] + offset, sizeof value);
    made[lane] = Register(value);
  }
  keep(to, made, lanes);
}

using Reading = void (*)(std::byte*, std::byte* const (&)[kLanes], std::int64_t, Lanes);

template <class Memory>
Reading reading_into(Type type) {
  return type == Type::kHalf   ? read_element<Memory, std::uint16_t>
         : type == Type::kWord ? read_element<Memory, std::uint32_t>
                               : read_element<Memory, std::uint64_t>;
}

Reading reading(const Access& access, Type type) {
  switch (access.bytes * (access.is_signed ? -1 : 1)) {
    case -1:
      return reading_into<std::int8_t>(type);
    case -2:
      return reading_into<std::int16_t>(type);
    case -4:
      return reading_into<std::int32_t>(type);
    case 1:
      return reading_into<std::uint8_t>(type);
    case 2:
      return reading_into<std::uint16_t>(type);
    case 4:
      return reading_into<std::uint32_t>(type);
    default:
      return reading_into<std::uint64_t>(type);
  }
}

void load(Warp& warp, const Instruction& i, Lanes lanes) {
  std::uint64_t addresses[kLanes];
  std::byte* from[kLanes];
  addresses_of(warp, i, i.access.count, addresses);
  const Touch touch{warp, i.access, lanes};
  touch.locate(addresses, from);
  touch.note_reads(addresses);
  if (Tally* const tally = warp.block().tally()) {
    tally->note_access(warp, i.access, lanes, addresses);
  }
  for (int part = 0; part < i.access.count; ++part) {
    reading(i.access, i.type[std::size_t(part)])(warp.at(i.place[std::size_t(part)]), from,
                                                 part * i.access.bytes, lanes);
  }
}

void store(Warp& warp, const Instruction& i, Lanes lanes) {
  std::uint64_t addresses[kLanes];
  std::byte* to[kLanes];
  addresses_of(warp, i, 0, addresses);
  const Touch touch{warp, i.access, lanes};
  touch.locate(addresses, to);
  if (Tally* const tally = warp.block().tally()) {
    tally->note_access(warp, i.access, lanes, addresses);
  }
  for (Lanes left = lanes; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::byte value[16];
    for (int part = 0; part < i.access.count; ++part) {
      const auto place = std::size_t(1 + part);
      std::memcpy(value + part * i.access.bytes,
                  warp.at(i.place[place]) + lane * bytes_of(i.type[place]),
                  std::size_t(i.access.bytes));
    }
    const auto bytes = std::size_t(i.access.bytes * i.access.count);
    touch.note_write(lane, addresses[lane], to[lane], value);
    std::memcpy(to[lane], value, bytes);
  }
}

// A device ignores a prefetch of what is not there; so nothing is checked.
void prefetch(Warp& warp, const Instruction& i, Lanes lanes) {
  std::uint64_t addresses[kLanes];
  addresses_of(warp, i, 0, addresses);
  if (Tally* const tally = warp.block().tally()) tally->note_prefetch(lanes, addresses);
}

struct Kind {
  const char* name;
  int bytes;
  bool is_signed;
};
constexpr Kind kKinds[] = {
    {"b8", 1, false},  {"u8", 1, false},  {"s8", 1, true},   {"b16", 2, false}, {"u16", 2, false},
    {"s16", 2, true},  {"b32", 4, false}, {"u32", 4, false}, {"s32", 4, true},  {"f32", 4, false},
    {"b64", 8, false}, {"u64", 8, false}, {"s64", 8, true},  {"f64", 8, false}};

void add_access(Forms& forms, const std::string& stem, Access access) {
  for (const Kind& kind : kKinds) {
    for (const int count : {1, 2, 4}) {
      if (kind.bytes * count > 16) continue;
      access.bytes = kind.bytes;
      access.count = count;
      access.is_signed = kind.is_signed;
      const std::string vector = count == 1 ? "" : "v" + std::to_string(count) + ".";
      // Registers may be wider than elements, so the operands' types are looked up in them.
      const Type type = kind.bytes == 8   ? Type::kDouble
                        : kind.bytes == 4 ? Type::kWord
                                          : Type::kHalf;
      std::vector<Type> operands(std::size_t(count), type);
      operands.insert(access.is_store ? operands.begin() : operands.end(), Type::kDouble);
      forms.add({stem + vector + kind.name, access.is_store ? store : load, Flow::kPlain,
                 access.is_store ? 0 : count, operands, access});
    }
  }
}

}  // namespace

void add_memory_forms(Forms& forms) {
  const auto add_both = [&](const std::string& space, Space where) {
    add_access(forms, "ld." + space + ".", {.space = where});
    add_access(forms, "st." + space + ".", {.space = where, .is_store = true});
  };
  add_both("global", Space::kGlobal);
  add_both("shared", Space::kShared);
  add_both("local", Space::kLocal);
  add_both("param", Space::kParam);
  add_access(forms, "ld.global.nc.", {.space = Space::kGlobal});
  forms.add({"prefetch.L2", prefetch, Flow::kPrefetch, 0, {Type::kDouble}, {}});
}

}  // namespace keel::ptx
