// Arrays in NumPy's format: what NumPy would write, and headers that do not fit their data.
#include "frontend/io/npy.h"

#include <cstring>

#include "tests/frontend/io/raw_bytes.h"
#include "tests/support/input_checks.h"

namespace keel::io {
namespace {

using test::refuses;

using namespace std::string_literals;

TEST_CASE("npy: an array as NumPy would write it") {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }";
  const std::string numpy =
      "\x93NUMPY\x01\x00v\x00"s + header + std::string(117 - header.size(), ' ') + "\n\x01\x02";
  CHECK((npy_bytes(Tensor::of<std::uint8_t>({2}, {1, 2})) == numpy));
}

std::string npy(const std::string& header, const std::string& content, char version = 1) {
  const std::string length = version == 1 ? raw(std::uint16_t(header.size()))
                                          : u32(static_cast<std::uint32_t>(header.size()));
  return "\x93NUMPY"s + version + '\0' + length + header + content;
}

TEST_CASE("npy: arrays of every kind") {
  const std::string shape = "'fortran_order': False, 'shape': (2,), }";
  const auto parse = [&](const std::string& descr, const std::string& content, char version = 1) {
    return parse_npy(npy("{'descr': '" + descr + "', " + shape, content, version), "t");
  };
  CHECK(same(parse("<f4", raw(1.5F) + raw(-2.F)), Tensor::of<float>({2}, {1.5, -2})));
  CHECK(same(parse("<f8", raw(1.5) + raw(-2.), 2), Tensor::of<double>({2}, {1.5, -2})));
  CHECK(same(parse("<i4", u32(3) + u32(~0u), 3), Tensor::of<std::int32_t>({2}, {3, -1})));
  CHECK(same(parse("|u1", "\x00\xff"s), Tensor::of<std::uint8_t>({2}, {0, 255})));
  CHECK(same(parse("|b1", "\x00\x01"s), Tensor::of<std::uint8_t>({2}, {0, 1})));
  CHECK(same(parse("|b1", "\x02\xff"s), Tensor::of<std::uint8_t>({2}, {1, 1})));
  const std::int64_t low = -2147483648, high = 2147483647;
  CHECK(parse("<i8", raw(low) + raw(high)).at(0) == double(low));
  for (const std::int64_t beyond : {low - 1, high + 1}) {
    CHECK(refuses(ErrorKind::kBadInput, "t: element 1: expected an integer of 32 bits",
                  [&] { parse("<i8", raw(low) + raw(beyond)); }));
  }
  // Any order of keys, other quotes, no spaces; the first axis innermost.
  const std::string fortran = R"({"shape":(2,3),"fortran_order":True,"descr":"|u1"})";
  CHECK(same(parse_npy(npy(fortran, "\0\3\1\4\2\5"s), "t"),
             Tensor::of<std::uint8_t>({2, 3}, {0, 1, 2, 3, 4, 5})));
  const std::string one_axis = R"({"shape":(2,),"fortran_order":True,"descr":"|u1"})";
  CHECK(same(parse_npy(npy(one_axis, "\1\2"), "t"), Tensor::of<std::uint8_t>({2}, {1, 2})));
}

// Where element number e of an array lies in Fortran order, the first axis innermost.
std::size_t fortran_place(const std::vector<std::int64_t>& shape, std::int64_t e) {
  std::int64_t place = 0, count = 1;
  for (const std::int64_t size : shape) count *= size;
  for (std::int64_t inner = count, stride = 1; const std::int64_t size : shape) {
    inner /= size;
    place += e / inner % size * stride;
    stride *= size;
  }
  return std::size_t(place);
}

// An array of the numbers 0, 1, ... in Fortran order.
template <class T>
std::string fortran_npy(const std::string& descr, const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  std::string sizes;
  for (const std::int64_t size : shape) {
    count *= size;
    sizes += std::to_string(size) + ",";
  }
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::int64_t e = 0; e < count; ++e) values[fortran_place(shape, e)] = T(e);
  std::string content;
  for (const T value : values) content += raw(value);
  return npy("{'descr': '" + descr + "', 'fortran_order': True, 'shape': (" + sizes + "), }",
             content);
}

TEST_CASE("npy: Fortran order of every rank and every kind") {
  const auto check = [](const std::string& bytes, const std::vector<std::int64_t>& shape,
                        bool is_bool) {
    const Tensor array = parse_npy(bytes, "t");
    CHECK(array.shape() == Shape(shape));
    for (std::int64_t e = 0; e < array.elements(); ++e) {
      CHECK(array.at(e) == double(is_bool ? e > 0 : e));
    }
  };
  std::vector<std::int64_t> shape;
  for (const std::int64_t size : {3, 2, 4, 1, 2, 1, 3, 1}) {  // 144 numbers
    shape.push_back(size);
    CAPTURE(shape.size());
    check(fortran_npy<float>("<f4", shape), shape, false);
    check(fortran_npy<double>("<f8", shape), shape, false);
    check(fortran_npy<std::int32_t>("<i4", shape), shape, false);
    check(fortran_npy<std::int64_t>("<i8", shape), shape, false);
    check(fortran_npy<std::uint8_t>("|u1", shape), shape, false);
    check(fortran_npy<std::uint8_t>("|b1", shape), shape, true);
  }
}

TEST_CASE("npy: headers of arrays that do not fit") {
  const std::string good = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1), }";
  CHECK(parse_npy(npy(good, "ab"), "t").elements() == 2);
  const auto refused = [](const std::string& bytes, std::string_view text) {
    return refuses(ErrorKind::kBadInput, text, [&] { parse_npy(bytes, "t"); });
  };
  const auto changed = [&](std::string_view part, std::string_view by, std::string_view text) {
    std::string header = good;
    return refused(npy(header.replace(header.find(part), part.size(), by), "ab"), text);
  };
  for (const char* descr : {">f4", "<f2", "<c8", "|O", "", "|u1'\n"}) {
    CHECK(changed("|u1", descr, "t: "));
  }
  CHECK(changed("'|u1'", "[('a', '|u1')]", "element type: expected <f4, "));
  CHECK(changed("'|u1'", "[('a', '|u1')]", "got \"a structured type\""));
  CHECK(changed("False", "None", "expected True or False"));
  CHECK(changed("'descr'", "'shape'", "t: "));
  CHECK(changed("'shape'", "'descr'", "every key once"));
  CHECK(changed("'shape'", "'shapes'", "expected descr, fortran_order or shape"));
  CHECK(changed(", 'shape': (2, 1), }", "}", "expected descr, fortran_order and shape"));
  CHECK(changed("(2, 1)", "(2, 0)", "t: shape: expected a size of 1 or more on every axis, got "));
  CHECK(changed("(2, 1)", "(0, 2)", "got \"(0, 2)\""));
  CHECK(changed("(2, 1)", "(2, -1)", "a size of 1 or more on every axis, got \"(2, -1)\""));
  CHECK(changed("(2, 1)", "(99999999999999999999,)", "a size of 1 or more"));
  CHECK(changed("(2, 1)", "(1,1,1,1,1,1,1,1,2)", "at most 8 axes, got \"(1,1,1,1,1,1,1,1,2)\""));
  CHECK(changed("(2, 1)", "(3,)", "data of shape (3): expected 3 bytes, got 2"));
  // The product is 2^64 + 2 and would wrap to the 2 bytes that are there.
  CHECK(changed("(2, 1)", "(6, 3074457345618258603)", "expected over 2^63 bytes"));
  CHECK(changed(" }", "} 1", "the end of the header"));
  CHECK(changed("}", "", "t: npy header: expected"));
  CHECK(refused(npy(good, "a"), "expected 2 bytes, got 1"));
  CHECK(refused(npy(good, "abc"), "expected 2 bytes, got 3"));
  CHECK(refused(npy(good, "ab", 4), "expected 1.0, 2.0 or 3.0, got 4.0"));
  CHECK(refused(npy(good, "ab", 2).replace(8, 4, "\xff\xff\xff\xff"),
                "npy header: expected at most"));
  CHECK(refused("\x93NUMPX\1\0\0\0\0\0\0\0"s, "npy format"));
  const std::string whole = npy(good, "ab");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CHECK(refused(whole.substr(0, length), "t: "));
  }
}

}  // namespace
}  // namespace keel::io
