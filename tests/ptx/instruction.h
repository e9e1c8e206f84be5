// The code that the interpreter runs: decoded instructions over registers that hold 32 lanes each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel::ptx {

inline constexpr int kLanes = 32;
using Lanes = std::uint32_t;  // a set of them

class Warp;
struct Instruction;
using Handler = void (*)(Warp& warp, const Instruction& instruction, Lanes lanes);

// The type of a register's value for each lane; a predicate is one bit, all others are 2, 4 or 8
// bytes.
enum class Type : std::uint8_t { kPredicate = 0, kHalf = 2, kWord = 4, kDouble = 8 };
inline int bytes_of(Type type) { return int(type); }

enum class Space : std::uint8_t { kNone, kGlobal, kShared, kLocal, kParam };

// How an instruction goes on; the warp itself runs all that is not plain.
enum class Flow : std::uint8_t {
  kPlain,
  kBranch,
  kExit,
  kBarrier,   // of the block, or of some of its warps
  kTogether,  // with the lanes that its last operand names
  kAddress,   // a mov that may take a variable's address
  kPair,      // a mov that joins or splits registers
  kCall,      // is replaced by what it calls
  kPrefetch,  // has an address and no effect on what is computed
};

// The access of a load or store.
struct Access {
  Space space = Space::kNone;
  bool is_store = false, is_signed = false;
  int bytes = 0;  // of one element
  int count = 1;  // of elements
};

// An instruction that the interpreter knows, under its full name.
struct Form {
  std::string name;
  Handler run = nullptr;
  Flow flow = Flow::kPlain;
  int results = 0;             // so many operands are written
  std::vector<Type> operands;  // results first
  Access access;
};

constexpr int kMostOperands = 6;

struct Instruction {
  const Form* form = nullptr;
  Handler run = nullptr;
  Flow flow = Flow::kPlain;
  bool is_guarded = false, is_negated = false;
  std::uint32_t guard = 0;
  // Where the operands' registers lie, and their types; results first.
  std::array<std::uint32_t, kMostOperands> place{};
  std::array<Type, kMostOperands> type{};
  Access access;
  std::int64_t offset = 0;  // of an address
  int target = 0;           // of a branch
  int line = 0;             // in the PTX
};

// A register that has its value before the kernel begins: a constant, or %tid.x and its like.
struct Preset {
  std::uint32_t place = 0;
  Type type = Type::kWord;
  std::uint64_t bits = 0;
  std::string special;  // "%tid.x", or nothing for a constant
};

struct Placed {
  std::string name;
  std::int64_t first = 0, bytes = 0;
};

// A kernel, ready to run.
struct Code {
  std::string name;
  std::vector<Instruction> instructions;
  std::uint32_t register_bytes = 0;  // of a warp
  std::vector<Preset> presets;
  std::vector<Placed> shared;      // each lies apart from the others
  std::int64_t shared_bytes = 0;   // with what lies between
  std::int64_t static_shared = 0;  // as a device counts them
  std::int64_t local_bytes = 0;    // of a thread
  std::vector<Placed> parameters;
  std::int64_t parameter_bytes = 0;
  int most_threads = 1024;  // of a block, as the kernel declares
  int registers = 0;        // of a thread by ptxas, 0 if that is not known
};

// Null if there is no such instruction.
const Form* find_form(std::string_view name);
// The names of all instructions, sorted.
std::vector<std::string> form_names();

}  // namespace keel::ptx
