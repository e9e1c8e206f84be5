// Pictures brought to the size of a network.
#include "frontend/data/picture_scale.h"

#include <doctest/doctest.h>

namespace keel::data {
namespace {

using Pixels = std::vector<std::uint8_t>;

// Grey, row by row.
io::Picture grey_picture(std::int64_t width, std::int64_t height, const Pixels& values) {
  io::Picture picture{width, height};
  for (const std::uint8_t value : values) picture.pixels.insert(picture.pixels.end(), 3, value);
  return picture;
}

TEST_CASE("picture scale: a picture of the right size stays, as planes") {
  io::Picture picture{2, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  CHECK(planes_of(picture, 2) == Pixels{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12});
}

TEST_CASE("picture scale: a smaller picture has means, a larger one repeats") {
  const io::Picture four =
      grey_picture(4, 4, {0, 4, 100, 100, 8, 12, 100, 100, 1, 1, 50, 60, 1, 1, 70, 80});
  CHECK(grey_of(four, 2) == Pixels{6, 100, 1, 65});
  CHECK(grey_of(grey_picture(2, 2, {1, 2, 3, 4}), 4) ==
        Pixels{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
  // Each new pixel takes one and a half of the three old ones.
  CHECK(grey_of(grey_picture(3, 3, {0, 30, 60, 0, 30, 60, 0, 30, 60}), 2) ==
        Pixels{10, 50, 10, 50});
}

TEST_CASE("picture scale: the middle square is what counts") {
  CHECK(grey_of(grey_picture(4, 2, {9, 1, 2, 9, 9, 3, 4, 9}), 2) == Pixels{1, 2, 3, 4});
  CHECK(grey_of(grey_picture(1, 3, {9, 5, 9}), 1) == Pixels{5});
}

TEST_CASE("picture scale: grey is a mixture of the colours") {
  CHECK(grey_of({1, 1, {255, 0, 0}}, 1) == Pixels{76});
  CHECK(grey_of({1, 1, {0, 255, 0}}, 1) == Pixels{150});
  CHECK(grey_of({1, 1, {0, 0, 255}}, 1) == Pixels{29});
  CHECK(grey_of({1, 1, {200, 200, 200}}, 1) == Pixels{200});
}

}  // namespace
}  // namespace keel::data
