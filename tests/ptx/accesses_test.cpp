// Loads and stores of every width and space, and variables of every kind.
#include "tests/ptx/check_op.h"
#include "tests/ptx/groups.h"

namespace keel::ptx {
namespace {

struct Kind {
  const char* name;
  int bytes;
  bool is_signed;
};
constexpr Kind kKinds[] = {
    {"b8", 1, false},  {"u8", 1, false},  {"s8", 1, true},   {"b16", 2, false}, {"u16", 2, false},
    {"s16", 2, true},  {"b32", 4, false}, {"u32", 4, false}, {"s32", 4, true},  {"f32", 4, false},
    {"b64", 8, false}, {"u64", 8, false}, {"s64", 8, true},  {"f64", 8, false}};

// The value of memory's bytes that a load puts into a register of 64 bits.
std::uint64_t extended(const std::byte* from, const Kind& kind) {
  std::uint64_t value = 0;
  for (int i = kind.bytes; i-- > 0;) value = value << 8 | std::uint64_t(from[i]);
  const int spare = 64 - 8 * kind.bytes;
  return kind.is_signed ? std::uint64_t(std::int64_t(value << spare) >> spare) : value;
}

std::string registers(const char* prefix, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}{}", i ? ", " : "", prefix, i);
  return count == 1 ? text : "{" + text + "}";
}

// Loads `count` elements of array p0 into %v, by way of a store into memory of another space.
std::string copy_text(const std::string& space, const Kind& kind, int count) {
  const std::string vector = count == 1 ? "" : fmt::format("v{}.", count);
  const std::string values = registers("%v", count), again = registers("%x", count);
  std::string body = ".reg .b64 %v<4>; .reg .b64 %x<4>; .reg .b64 %d<8>; .reg .b32 %w<4>;\n";
  if (space == "shared") body += ".shared .align 16 .b8 memory[512];\n";
  if (space == "local") body += ".local .align 16 .b8 memory[16];\n";
  if (space == "param") body += ".param .align 16 .b8 memory[16];\n";
  body +=
      "mov.u32 %w0, %tid.x; mul.wide.u32 %d0, %w0, 16; mul.wide.u32 %d6, %w0, 32;\n"
      "ld.param.u64 %d1, [p0]; add.s64 %d1, %d1, %d0;\n"
      "ld.param.u64 %d2, [p1]; add.s64 %d2, %d2, %d6;\n";
  body += fmt::format("ld.global.{}{} {}, [%d1];\n", vector, kind.name, values);
  if (space == "shared") {
    body += "mov.u64 %d3, memory; add.s64 %d3, %d3, %d0;\n";
    body += fmt::format("st.shared.{0}{1} [%d3], {2};\nld.shared.{0}{1} {3}, [%d3];\n", vector,
                        kind.name, values, again);
  } else if (space == "global" || space == "global.nc") {
    body += fmt::format("ld.{}.{}{} {}, [%d1];\n", space, vector, kind.name, again);
  } else {
    body += fmt::format("st.{0}.{1}{2} [memory], {3};\nld.{0}.{1}{2} {4}, [memory+0];\n", space,
                        vector, kind.name, values, again);
  }
  for (int i = 0; i < count; ++i) body += fmt::format("st.global.u64 [%d2+{}], %x{};\n", 8 * i, i);
  return kernel_text(2, body + "ret;\n");
}

Array pattern(std::size_t count) {
  std::mt19937_64 random(3);
  Array all(count);
  for (std::uint64_t& value : all) value = random();
  return all;
}

void check_copy(const std::string& space, const Kind& kind, int count) {
  const std::string text = copy_text(space, kind, count);
  CAPTURE(text);
  std::vector<Array> arrays = {pattern(64), Array(128)};
  run_kernel(text, arrays, {});
  const auto* const from = reinterpret_cast<const std::byte*>(arrays[0].data());
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < std::size_t(count); ++i) {
      REQUIRE(arrays[1][4 * lane + i] ==
              extended(from + 16 * lane + i * std::size_t(kind.bytes), kind));
    }
  }
  const std::string tail = (count == 1 ? "" : fmt::format("v{}.", count)) + kind.name;
  applied().insert("ld." + space + "." + tail);
  if (space != "global.nc") applied().insert("st." + space + "." + tail);
}

// Stores to global memory touch so many bytes and no others.
void check_store(const Kind& kind, int count) {
  const std::string vector = count == 1 ? "" : fmt::format("v{}.", count);
  const std::string text =
      kernel_text(1,
                  ".reg .b64 %v<4>; .reg .b64 %d<4>; .reg .b32 %w<4>;\n"
                  "mov.u32 %w0, %tid.x; mul.wide.u32 %d0, %w0, 32; ld.param.u64 %d1, [p0];\n"
                  "add.s64 %d1, %d1, %d0; mov.u64 %v0, 0x1122334455667788; mov.u64 %v1, %v0;\n"
                  "mov.u64 %v2, %v0; mov.u64 %v3, %v0;\n" +
                      fmt::format("st.global.{}{} [%d1+16], {};\nret;\n", vector, kind.name,
                                  registers("%v", count)));
  CAPTURE(text);
  std::vector<Array> arrays = {Array(128, ~0ull)};
  run_kernel(text, arrays, {});
  const auto* const bytes = reinterpret_cast<const unsigned char*>(arrays[0].data());
  for (int i = 0; i < 32 * 32; ++i) {
    const int place = i % 32 - 16;
    const bool is_written = place >= 0 && place < kind.bytes * count;
    REQUIRE(int(bytes[i]) == (is_written ? 0x11 * (8 - place % kind.bytes) : 0xff));
  }
}

}  // namespace

void check_accesses() {
  for (const Kind& kind : kKinds) {
    for (const int count : {1, 2, 4}) {
      if (kind.bytes * count > 16) continue;
      for (const char* const space : {"global", "global.nc", "shared", "local", "param"}) {
        check_copy(space, kind, count);
      }
      check_store(kind, count);
    }
  }
}

TEST_CASE("ptx: loads and stores") { check_accesses(); }

TEST_CASE("ptx: registers joined and split") {
  std::vector<Array> arrays = {pattern(1), Array(4)};
  run_kernel(kernel_text(2,
                         ".reg .b16 %h<4>; .reg .b32 %w<8>; .reg .b64 %d<8>;\n"
                         "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1];\n"
                         "ld.global.u64 %d2, [%d0]; mov.b64 {%w0, %w1}, %d2;\n"
                         "mov.b64 %d3, {%w1, %w0}; st.global.u64 [%d1], %d3;\n"
                         "mov.b32 {%h0, %h1}, %w0; mov.b32 %w2, {%h1, %h0};\n"
                         "st.global.u32 [%d1+8], %w2; mov.b64 {%w5, _}, %d2;\n"
                         "st.global.u32 [%d1+16], %w5; ret;\n"),
             arrays, {1, 1});
  const std::uint64_t x = arrays[0][0];
  CHECK(arrays[1][0] == (x << 32 | x >> 32));
  CHECK(arrays[1][1] == ((x & 0xffff) << 16 | (x >> 16 & 0xffff)));
  CHECK(arrays[1][2] == (x & 0xffffffff));
}

TEST_CASE("ptx: a wider register gives an operand its lower bits") {
  std::vector<Array> arrays = {pattern(1), Array(2)};
  run_kernel(kernel_text(2,
                         ".reg .b16 %h<4>; .reg .b32 %w<8>; .reg .b64 %d<8>;\n"
                         "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1];\n"
                         "ld.global.u64 %d2, [%d0]; add.u32 %w0, %d2, 1;\n"
                         "st.global.u32 [%d1], %w0; add.u16 %h0, %d2, %w0;\n"
                         "st.global.u16 [%d1+8], %h0; ret;\n"),
             arrays, {1, 1});
  const std::uint64_t x = arrays[0][0];
  CHECK(arrays[1][0] == ((x + 1) & 0xffffffff));
  CHECK(arrays[1][1] == ((2 * x + 1) & 0xffff));
}

TEST_CASE("ptx: variables of a module have their values and their alignment") {
  const std::string declared =
      ".global .align 8 .b8 table[16] = {1, 2, 3, 4, 5, 6, 7, 8, 255};\n"
      ".shared .align 16 .b8 a[4];\n.shared .align 16 .b8 b[16];\n";
  std::string text = kernel_text(1,
                                 ".reg .b32 %w<4>; .reg .b64 %d<4>;\nld.param.u64 %d0, [p0];\n"
                                 "ld.global.u64 %d1, [table]; st.global.u64 [%d0], %d1;\n"
                                 "ld.global.u64 %d1, [table+8]; st.global.u64 [%d0+8], %d1;\n"
                                 "mov.u32 %w0, a; mov.u32 %w1, b; st.shared.u32 [a], %w0;\n"
                                 "st.global.u32 [%d0+16], %w1; ret;\n");
  text.insert(text.find(".visible"), declared);
  std::vector<Array> arrays = {Array(3)};
  const std::string fault = fault_of([&] { run_kernel(text, arrays, {1, 1}); });
  CAPTURE(fault);
  CHECK(fault.empty());
  CHECK(arrays[0][0] == 0x0807060504030201);
  CHECK(arrays[0][1] == 0xff);
  CHECK(arrays[0][2] % 16 == 0);
}

}  // namespace keel::ptx
