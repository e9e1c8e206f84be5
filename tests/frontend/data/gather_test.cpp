// Copying rows of a column: as they are, scaled, and what does not fit.
#include "frontend/data/gather.h"

#include "tests/frontend/data/row_lists.h"
#include "tests/support/input_checks.h"

namespace keel::data {
namespace {

using test::refuses;

TEST_CASE("gather: rows as they are") {
  const Tensor column = Tensor::of<std::int32_t>({3, 2}, {0, 1, 10, 11, 20, 21});
  std::vector<std::int32_t> out(6, -1);
  gather(column, Rows{2, 0}, std::as_writable_bytes(std::span(out).first(4)));
  CHECK(out == std::vector<std::int32_t>{20, 21, 0, 1, -1, -1});
}

TEST_CASE("gather: u8 rows scaled to f32") {
  Tensor column(DType::kU8, {3, 28, 28});
  const auto values = column.as<std::uint8_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint8_t>(i * 7 + i / 784);
  std::vector<float> out(2 * 784 + 1, -1);
  gather(column, Rows{2, 1}, {.scale = 0.25f, .offset = -8}, std::span(out).first(2 * 784));
  for (std::size_t i = 0; i < 784; ++i) {
    REQUIRE(out[i] == values[2 * 784 + i] * 0.25f - 8);
    REQUIRE(out[784 + i] == values[784 + i] * 0.25f - 8);
  }
  CHECK(out.back() == -1);
}

TEST_CASE("gather: refusals") {
  const Tensor bytes(DType::kU8, {3, 2}), floats(DType::kF32, {3, 2});
  std::vector<float> out(4);
  const std::span<std::byte> raw = std::as_writable_bytes(std::span(out));
  const auto refused = [](std::string_view text, auto&& action) {
    return refuses(ErrorKind::kUsage, text, action);
  };
  CHECK(refused("row: expected 0 to 2, got 3", [&] { gather(bytes, Rows{0, 3}, {}, out); }));
  CHECK(refused("row: expected 0 to 2, got -1", [&] { gather(floats, Rows{-1, 0}, raw); }));
  CHECK(refused("room for 2 elements, got 4", [&] { gather(bytes, Rows{0}, {}, out); }));
  CHECK(refused("room for 6 elements, got 4", [&] { gather(floats, Rows{0, 1, 2}, raw); }));
  CHECK(refused("whole f32 elements, got 15", [&] { gather(floats, Rows{0, 1}, raw.first(15)); }));
  CHECK(refused("expected u8", [&] { gather(floats, Rows{0, 1}, {}, out); }));
  CHECK(refused("got a scalar", [&] { gather(Tensor::scalar(1), Rows{0}, raw); }));
}

}  // namespace
}  // namespace keel::data
