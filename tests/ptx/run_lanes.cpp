#include "tests/ptx/run_lanes.h"

#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

const char* register_of(Type type) {
  switch (type) {
    case Type::kPredicate:
      return "%p";
    case Type::kHalf:
      return "%h";
    case Type::kWord:
      return "%w";
    default:
      return "%d";
  }
}

// Element %d0 of array `array`, in register `number` of its type.
std::string load(Type type, int array, int number) {
  const std::string address =
      fmt::format("ld.param.u64 %d1, [p{}]; add.s64 %d1, %d1, %d0;\n", array);
  switch (type) {
    case Type::kPredicate:
      return address + fmt::format("ld.global.u32 %w1, [%d1]; setp.ne.u32 %p{}, %w1, 0;\n", number);
    case Type::kHalf:
      return address + fmt::format("ld.global.b16 %h{}, [%d1];\n", number);
    case Type::kWord:
      return address + fmt::format("ld.global.b32 %w{}, [%d1];\n", number);
    default:
      return address + fmt::format("ld.global.b64 %d{}, [%d1];\n", number);
  }
}

std::string store(Type type, int array, int number) {
  const std::string address =
      fmt::format("ld.param.u64 %d1, [p{}]; add.s64 %d1, %d1, %d0;\n", array);
  switch (type) {
    case Type::kPredicate:
      return address + fmt::format("selp.u32 %w1, 1, 0, %p{}; st.global.b32 [%d1], %w1;\n", number);
    case Type::kHalf:
      return address + fmt::format("st.global.b16 [%d1], %h{};\n", number);
    case Type::kWord:
      return address + fmt::format("st.global.b32 [%d1], %w{};\n", number);
    default:
      return address + fmt::format("st.global.b64 [%d1], %d{};\n", number);
  }
}

constexpr const char* kDeclarations =
    ".reg .pred %p<20>;\n.reg .b16 %h<20>;\n.reg .b32 %w<20>;\n.reg .b64 %d<20>;\n";
constexpr const char* kIndex =
    "mov.u32 %w0, %ctaid.x; mov.u32 %w1, %ntid.x; mov.u32 %w2, %tid.x;\n"
    "mad.lo.s32 %w0, %w0, %w1, %w2; mul.wide.u32 %d0, %w0, 8;\n";

}  // namespace

std::string kernel_text(int arrays, const std::string& body) {
  std::string parameters;
  for (int i = 0; i < arrays; ++i) {
    parameters += fmt::format("{}.param .u64 p{}", i == 0 ? "" : ", ", i);
  }
  return fmt::format(
      ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k({})\n{{\n{}}}\n",
      parameters, body);
}

namespace {

void run_code(const Module& module, const Code& code, std::vector<Array>& arrays, Grid grid,
              Tally* tally) {
  Memory memory;
  GlobalCells cells;
  Array addresses;
  for (Array& array : arrays) {
    memory.add(reinterpret_cast<std::byte*>(array.data()), std::int64_t(8 * array.size()));
    addresses.push_back(reinterpret_cast<std::uint64_t>(array.data()));
  }
  for (const auto& [name, bytes] : module.globals()) {
    memory.add(const_cast<std::byte*>(bytes.data()), std::int64_t(bytes.size()));
  }
  Launch launch{code,   grid.blocks, grid.threads, std::as_bytes(std::span(addresses)),
                memory, cells,       tally};
  run_grid(launch);
}

}  // namespace

void run_kernel(const std::string& text, std::vector<Array>& arrays, Grid grid) {
  const Module module(text);
  run_code(module, decode(module, "k"), arrays, grid, nullptr);
}

Counts counts_of(const std::string& text, std::vector<Array>& arrays, Grid grid) {
  const Module module(text);
  const Code code = decode(module, "k");
  Sectors sectors;
  Tally tally(code, sectors);
  run_code(module, code, arrays, grid, &tally);
  return tally.counts();
}

std::set<std::string>& applied() {
  static std::set<std::string> names;
  return names;
}

Array results_of(const std::string& name, const std::vector<Array>& columns, int result) {
  applied().insert(name);
  const Form* const form = find_form(name);
  if (!form) fail("the instruction '{}' is not known", name);
  const int sources = int(form->operands.size()) - form->results;
  std::string body = std::string(kDeclarations) + kIndex, operands;
  for (int i = 0; i < sources; ++i) {
    const Type type = form->operands[std::size_t(form->results + i)];
    body += load(type, i, 10 + i);
    operands += fmt::format(", {}{}", register_of(type), 10 + i);
  }
  std::string results = fmt::format("{}5", register_of(form->operands[0]));
  if (form->results == 2) results += fmt::format("|{}6", register_of(form->operands[1]));
  body += fmt::format("{} {}{};\n", name, results, operands);
  body += store(form->operands[std::size_t(result)], sources, 5 + result) + "ret;\n";
  std::vector<Array> arrays = columns;
  const std::size_t count = columns.at(0).size(), whole = (count + 31) / 32 * 32;
  for (Array& array : arrays) array.resize(whole);
  arrays.emplace_back(whole);
  run_kernel(kernel_text(sources + 1, body), arrays, {std::int64_t(whole / 32), 32});
  arrays.back().resize(count);
  return arrays.back();
}

std::string fault_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

}  // namespace keel::ptx
