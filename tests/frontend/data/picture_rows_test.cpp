// Pictures in batches: their values, and their augmentation as a function of seed, epoch and row.
#include "frontend/data/picture_rows.h"

#include <doctest/doctest.h>

#include <set>
#include <tuple>

#include "frontend/data/data_loader.h"
#include "frontend/data/textures.h"
#include "tests/support/checks.h"

namespace keel::data {
namespace {

constexpr std::int64_t kSize = 3 * 32 * 32;

std::shared_ptr<const PictureRows> texture_rows(bool augments, std::int64_t count = 24) {
  return std::make_shared<PictureRows>(SplitNotes{"textures"}, make_textures(count, 5, "x"),
                                       augments);
}

std::vector<float> values_of(const Batch& batch, std::int64_t place) {
  const std::span<const float> all = batch.values[0].as<float>();
  const auto one = all.subspan(std::size_t(place * kSize), std::size_t(kSize));
  return {one.begin(), one.end()};
}

// A row's values in training, wherever in the epoch it comes.
std::vector<float> trained(std::uint64_t seed, std::uint32_t epoch, std::int64_t row,
                           std::int64_t batch = 4) {
  DataLoader stream(texture_rows(true), {.batch = batch, .shuffle = seed});
  for (std::int64_t step = 0; step < stream.steps(epoch); ++step) {
    const Batch& made = stream.at(epoch, step);
    for (std::int64_t place = 0; place < batch; ++place) {
      if (made.rows[std::size_t(place)] == row) return values_of(made, place);
    }
  }
  return {};
}

TEST_CASE("pictures: colours are normalized each by its own mean and deviation") {
  Pictures pictures = Pictures::of_size(2);
  pictures.picture(1)[0] = 255;
  pictures.picture(1)[1024 + 33] = 51;
  pictures.label.as<std::int32_t>()[1] = 7;
  const auto rows = std::make_shared<PictureRows>(SplitNotes{"two"}, std::move(pictures), true);
  DataLoader stream(rows, {.batch = 2, .shuffle = {}});
  const Batch& batch = stream.at(0, 0);
  const std::vector<float> values = values_of(batch, 1);
  CHECK(values[0] == doctest::Approx((1 - 0.485) / 0.229));
  CHECK(values[1] == doctest::Approx(-0.485 / 0.229));
  CHECK(values[1024 + 33] == doctest::Approx((0.2 - 0.456) / 0.224));
  CHECK(values[2048] == doctest::Approx(-0.406 / 0.225));
  CHECK(batch.values[1].at(0) == 0);
  CHECK(batch.values[1].at(1) == 7);
}

TEST_CASE("pictures: training moves and flips each row as crop_and_flip says") {
  Pictures textures = make_textures(24, 5, "x");
  const std::vector<float> seen = trained(3, 2, 9);
  const CropAndFlip how = crop_and_flip(3, 2, 9);
  const auto plain = texture_rows(false);
  DataLoader stream(plain, {.batch = 24, .shuffle = {}});
  const std::vector<float> whole = values_of(stream.at(0, 0), 9);
  const double black[] = {-0.485 / 0.229, -0.456 / 0.224, -0.406 / 0.225};
  for (std::int64_t colour = 0; colour < 3; ++colour) {
    for (std::int64_t y = 0; y < 32; ++y) {
      for (std::int64_t x = 0; x < 32; ++x) {
        const std::int64_t from_y = y + how.down, from_x = (how.flip ? 31 - x : x) + how.right;
        const bool inside = from_y >= 0 && from_y < 32 && from_x >= 0 && from_x < 32;
        const double expected =
            inside ? double(whole[std::size_t(colour * 1024 + from_y * 32 + from_x)])
                   : black[colour];
        REQUIRE(double(seen[std::size_t(colour * 1024 + y * 32 + x)]) ==
                doctest::Approx(expected).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("pictures: an augmented row depends on seed, epoch and row alone") {
  for (const std::int64_t row : {0, 5, 23}) {
    const std::vector<float> once = trained(1, 4, row);
    CHECK(once == trained(1, 4, row));
    CHECK(once == trained(1, 4, row, 6));  // another batch, another place
    CHECK(once == trained(1, 4, row, 8));
  }
  std::set<std::tuple<std::int64_t, std::int64_t, bool>> met;
  for (const std::uint64_t seed : {1, 2}) {
    for (const std::uint32_t epoch : {0, 1}) {
      const CropAndFlip how = crop_and_flip(seed, epoch, 7);
      met.emplace(how.down, how.right, how.flip);
    }
  }
  CHECK(met.size() >= 3);
}

TEST_CASE("pictures: every move of -4 to 4 and both sides come equally often") {
  std::array<int, 9> down{}, right{};
  int flips = 0;
  constexpr int kRows = 9000;
  for (int row = 0; row < kRows; ++row) {
    const CropAndFlip how = crop_and_flip(1, 0, row);
    ++down.at(std::size_t(how.down + 4));
    ++right.at(std::size_t(how.right + 4));
    flips += how.flip;
  }
  // Each is a binomial count; five deviations of 1000 in 9000, and of 4500, are 149 and 237.
  for (const auto& counts : {down, right}) {
    for (const int count : counts) CHECK(std::abs(count - kRows / 9) < 150);
  }
  CHECK(std::abs(flips - kRows / 2) < 240);
}

TEST_CASE("pictures: an evaluation, and training without augmentation, see rows as they are") {
  const auto plain = texture_rows(false), augmented = texture_rows(true);
  DataLoader evaluation(augmented, {.batch = 24, .shuffle = {}});
  DataLoader training(plain, {.batch = 24, .shuffle = 3});
  const Batch& shuffled = training.at(0, 0);
  for (std::int64_t place = 0; place < 24; ++place) {
    const std::int64_t row = shuffled.rows[std::size_t(place)];
    CHECK(values_of(shuffled, place) == values_of(evaluation.at(1, 0), row));
  }
}

TEST_CASE("pictures: slices copy rows") {
  const Pictures all = make_textures(10, 1, "x");
  const Pictures part = all.slice(3, 4);
  CHECK(part.rows() == 4);
  CHECK(part.label.at(3) == all.label.at(6));
  CHECK(part.image.at(kSize + 77) == all.image.at(4 * kSize + 77));
  test::check_refused([&] { all.slice(8, 3); }, "[pictures] expected rows within 10");
}

}  // namespace
}  // namespace keel::data
