// The header is a Python dictionary of three entries; no more of Python is understood.
#include "frontend/io/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <vector>

#include "src/core/error.h"

namespace keel::io {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kMaxNpyHeaderBytes = 1 << 16;
constexpr std::size_t kMaxShownHeader = 24;   // characters of a header in a message
constexpr std::size_t kMaxShape = 120;  // of a shape

// An element type by NumPy's name, and the type that it is read as.
struct Element {
  std::string_view descr;
  std::int64_t bytes;
  DType dtype;
};
constexpr std::string_view kBool = "|b1";
constexpr Element kElements[] = {{"<f4", 4, DType::kF32}, {"<f8", 8, DType::kF64},
                                 {"<i4", 4, DType::kI32}, {"<i8", 8, DType::kI32},
                                 {"|u1", 1, DType::kU8},  {kBool, 1, DType::kU8}};

class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& who) : text_(text), who_(who) {}

  bool take(char c) {
    if (!starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) { expect(take(c), std::string_view(&c, 1)); }
  std::string_view quoted() {
    const char quote = take('"') ? '"' : '\'';
    if (quote == '\'') expect(quote);
    return until(text_.find(quote), "a closing quote", 1);
  }
  bool boolean() {
    skip_space();
    const bool yes = text_.starts_with("True");
    expect(yes || text_.starts_with("False"), "True or False");
    text_.remove_prefix(yes ? 4 : 5);
    return yes;
  }
  std::int64_t size(std::string_view shape) {
    skip_space();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    expect_of(shape, error == std::errc() && value >= 1, "a size of 1 or more on every axis");
    text_.remove_prefix(std::size_t(end - text_.data()));
    return value;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    skip_space();
    const std::string_view shape = text_.substr(0, text_.find(')') + 1);
    expect('(');
    while (!take(')')) {
      sizes.push_back(size(shape));
      expect_of(shape, sizes.size() <= Shape::kMaxRank, "at most 8 axes");
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }
  void expect_end() {
    skip_space();
    expect(text_.empty(), "the end of the header");
  }
  void expect(bool holds, std::string_view what) const {
    check(holds, ErrorKind::kBadInput, "{}: npy header: expected {}, got {:?}", who_, what,
          text_.substr(0, kMaxShownHeader));
  }

  bool starts_with(char c) {
    skip_space();
    return text_.starts_with(c);
  }

 private:
  void expect_of(std::string_view shape, bool holds, std::string_view what) const {
    check(holds, ErrorKind::kBadInput, "{}: shape: expected {}, got {:?}", who_, what,
          shape.substr(0, kMaxShape));
  }
  void skip_space() { text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size())); }
  std::string_view until(std::size_t end, std::string_view what, std::size_t skip) {
    expect(end != std::string_view::npos, what);
    const std::string_view result = text_.substr(0, end);
    text_.remove_prefix(end + skip);
    return result;
  }

  std::string_view text_;
  const std::string& who_;
};

struct Header {
  Element element{};
  bool fortran_order = false;
  std::vector<std::int64_t> sizes;
};

Element find_element(std::string_view descr, const std::string& who) {
  for (const Element& element : kElements) {
    if (element.descr == descr) return element;
  }
  fail(ErrorKind::kBadInput, "{}: element type: expected <f4, <f8, <i4, <i8, |u1 or |b1, got {:?}",
       who, descr.substr(0, kMaxShownHeader));
}

Header parse_npy_header(std::string_view bytes, const std::string& who) {
  HeaderText text(bytes, who);
  Header header;
  std::vector<std::string_view> keys;
  text.expect('{');
  while (!text.take('}')) {
    const std::string_view key = keys.emplace_back(text.quoted());
    text.expect(std::ranges::count(keys, key) == 1, "every key once");
    text.expect(':');
    if (key == "descr") {
      header.element =
          find_element(text.starts_with('[') ? "a structured type" : text.quoted(), who);
    } else if (key == "fortran_order") {
      header.fortran_order = text.boolean();
    } else {
      text.expect(key == "shape", "descr, fortran_order or shape before this");
      header.sizes = text.tuple();
    }
    if (!text.take(',')) {
      text.expect('}');
      break;
    }
  }
  text.expect(keys.size() == 3, "descr, fortran_order and shape before this");
  text.expect_end();
  return header;
}

// The header's text, removed from the front of `bytes` with all before it.
std::string_view take_header(std::string_view& bytes, const std::string& who) {
  check(bytes.starts_with(kNpyMagic) && bytes.size() >= 12, ErrorKind::kBadInput,
        "{}: expected an array in npy format, got other content", who);
  const int major = static_cast<unsigned char>(bytes[6]), minor = bytes[7];
  check(major >= 1 && major <= 3 && minor == 0, ErrorKind::kBadInput,
        "{}: npy version: expected 1.0, 2.0 or 3.0, got {}.{}", who, major, minor);
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, length_bytes);
  bytes.remove_prefix(8 + length_bytes);
  check(length <= std::min(bytes.size(), kMaxNpyHeaderBytes), ErrorKind::kBadInput,
        "{}: npy header: expected at most {} bytes, got {}", who,
        std::min(bytes.size(), kMaxNpyHeaderBytes), length);
  const std::string_view header = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return header;
}

void check_data_bytes(const Header& header, std::size_t got, const std::string& who) {
  std::int64_t expected = header.element.bytes;
  bool overflow = false;
  for (std::int64_t size : header.sizes) {
    overflow |= __builtin_mul_overflow(expected, size, &expected);
  }
  check(!overflow && expected == std::int64_t(got), ErrorKind::kBadInput,
        "{}: data of shape ({}): expected {} bytes, got {}", who, fmt::join(header.sizes, ", "),
        overflow ? "over 2^63" : fmt::format("{}", expected), got);
}

void narrow(std::string_view data, std::span<std::int32_t> out, const std::string& who) {
  using Limits = std::numeric_limits<std::int32_t>;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, data.data() + 8 * i, 8);
    check(value >= Limits::min() && value <= Limits::max(), ErrorKind::kBadInput,
          "{}: element {}: expected an integer of 32 bits, got {}", who, i, value);
    out[i] = static_cast<std::int32_t>(value);
  }
}

// NumPy takes every byte but 0 for true.
void make_truth(std::span<std::uint8_t> bytes) {
  for (std::uint8_t& byte : bytes) byte = byte != 0;
}

// `source` has the first axis innermost.
Tensor to_c_order(const Tensor& source, const Shape& shape) {
  Tensor result(source.dtype(), shape);
  const std::int64_t bytes = size_of(source.dtype());
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  for (int axis = 0; axis < shape.rank(); ++axis) strides[axis] = shape.elements(0, axis);
  for (std::int64_t to = 0; to < result.elements(); ++to) {
    std::int64_t rest = to, from = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      from += rest % shape[axis] * strides[axis];
      rest /= shape[axis];
    }
    std::memcpy(result.data() + to * bytes, source.data() + from * bytes, std::size_t(bytes));
  }
  return result;
}

}  // namespace

Tensor parse_npy(std::string_view bytes, const std::string& who) {
  const Header header = parse_npy_header(take_header(bytes, who), who);
  check_data_bytes(header, bytes.size(), who);
  const Shape shape{std::span<const std::int64_t>(header.sizes)};
  Tensor array(header.element.dtype, shape);
  if (header.element.bytes == size_of(array.dtype())) {
    std::memcpy(array.data(), bytes.data(), bytes.size());
    if (header.element.descr == kBool) make_truth(array.as<std::uint8_t>());
  } else {
    narrow(bytes, array.as<std::int32_t>(), who);
  }
  return header.fortran_order && shape.rank() > 1 ? to_c_order(array, shape) : std::move(array);
}

std::string npy_header(const Tensor& array) {
  const auto element = std::ranges::find(kElements, array.dtype(), &Element::dtype);
  check(element != std::end(kElements), ErrorKind::kUsage, "[npy] no element type for {}",
        name_of(array.dtype()));
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", element->descr,
                  fmt::join(array.shape().sizes(), ", "), array.shape().rank() == 1 ? "," : "");
  // The data begin at a multiple of 64 bytes.
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  std::string bytes(kNpyMagic);
  bytes += {1, 0, static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)};
  return bytes + header;
}

std::string npy_bytes(const Tensor& array) {
  std::string bytes = npy_header(array);
  bytes.append(reinterpret_cast<const char*>(array.data()), std::size_t(array.bytes()));
  return bytes;
}

}  // namespace keel::io
