// Comparisons and choices.
#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

template <class T>
void add_order(Forms& forms, const std::string& type) {
  add<[](T a, T b) { return a == b; }>(forms, "setp.eq" + type);
  add<[](T a, T b) { return a < b; }>(forms, "setp.lt" + type);
  add<[](T a, T b) { return a <= b; }>(forms, "setp.le" + type);
  add<[](T a, T b) { return (a > b); }>(forms, "setp.gt" + type);
  add<[](T a, T b) { return a >= b; }>(forms, "setp.ge" + type);
}

template <class T>
void add_equality(Forms& forms, const std::string& type) {
  add<[](T a, T b) { return a == b; }>(forms, "setp.eq" + type);
  add<[](T a, T b) { return a != b; }>(forms, "setp.ne" + type);
}

// "ne" of floats is false for NaN; the forms that end with u hold for it.
template <class T>
void add_float_order(Forms& forms, const std::string& type) {
  add_order<T>(forms, type);
  add<[](T a, T b) { return (a < b || a > b); }>(forms, "setp.ne" + type);
  add<[](T a, T b) { return !(a < b || a > b); }>(forms, "setp.equ" + type);
  add<[](T a, T b) { return !(a == b); }>(forms, "setp.neu" + type);
  add<[](T a, T b) { return !(a >= b); }>(forms, "setp.ltu" + type);
  add<[](T a, T b) { return !(a > b); }>(forms, "setp.leu" + type);
  add<[](T a, T b) { return !(a <= b); }>(forms, "setp.gtu" + type);
  add<[](T a, T b) { return !(a < b); }>(forms, "setp.geu" + type);
  add<[](T a, T b) { return a == a && b == b; }>(forms, "setp.num" + type);
  add<[](T a, T b) { return !(a == a && b == b); }>(forms, "setp.nan" + type);
}

template <class T>
void add_choice(Forms& forms, const std::string& width, std::string_view kinds) {
  for (const char kind : kinds) {
    add<[](T a, T b, bool first) { return first ? a : b; }>(forms,
                                                            std::string("selp.") + kind + width);
  }
}

}  // namespace

void add_compare_forms(Forms& forms) {
  add_equality<std::uint16_t>(forms, ".b16");
  add_equality<std::uint32_t>(forms, ".b32");
  add_equality<std::uint64_t>(forms, ".b64");
  const auto integers = [&]<class T>(T, const std::string& type) {
    add_order<T>(forms, type);
    add_equality<T>(forms, type);
  };
  integers(std::int16_t{}, ".s16");
  integers(std::int32_t{}, ".s32");
  integers(std::int64_t{}, ".s64");
  integers(std::uint16_t{}, ".u16");
  integers(std::uint32_t{}, ".u32");
  integers(std::uint64_t{}, ".u64");
  add_float_order<float>(forms, ".f32");
  add_float_order<double>(forms, ".f64");
  add_choice<std::uint16_t>(forms, "16", "bus");
  add_choice<std::uint32_t>(forms, "32", "busf");
  add_choice<std::uint64_t>(forms, "64", "busf");
}

}  // namespace keel::ptx
