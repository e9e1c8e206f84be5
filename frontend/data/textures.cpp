#include "frontend/data/textures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/data/draw.h"

namespace keel::data {
namespace {

constexpr int kTextures = 10, kWaves = 3, kColoursOfWave = 3;
constexpr double kTurn = 6.283185307179586;
constexpr double kFull = 1.5, kNoise = 0.3;
constexpr std::uint64_t kClassKey = 10;  // the classes are the same for every seed

struct Wave {
  double across = 0, down = 0;  // turns from one pixel to the next
  std::array<double, kColoursOfWave> colour = {};
};
using Texture = std::array<Wave, kWaves>;

Wave random_wave(Draw& draw) {
  const double frequency = 0.04 + 0.18 * draw.uniform(), turn = kTurn / 2 * draw.uniform();
  Wave wave{frequency * std::cos(turn), frequency * std::sin(turn)};
  for (double& part : wave.colour) part = draw.uniform() - 0.5;
  return wave;
}

std::array<Texture, kTextures> class_textures() {
  std::array<Texture, kTextures> textures;
  for (std::uint32_t label = 0; label < kTextures; ++label) {
    Draw draw(kClassKey, stream_of("textures.classes"), label);
    for (Wave& wave : textures[label]) wave = random_wave(draw);
  }
  return textures;
}

// The ten rows from a multiple of ten have the classes in a random order.
std::int32_t texture_of(std::uint64_t seed, std::uint32_t stream, std::int64_t row) {
  Draw draw(seed, stream, static_cast<std::uint32_t>(row / kTextures));
  std::array<std::int32_t, kTextures> labels;
  for (int i = 0; i < kTextures; ++i) {
    labels[std::size_t(i)] = i;
    std::swap(labels[std::size_t(i)], labels[std::size_t(draw.below(i + 1))]);
  }
  return labels[std::size_t(row % kTextures)];
}

// Deviation 1, nearly normal but never beyond 3.5: a sum of four uniforms, which unlike a logarithm
// has the same bits on every machine. The sines and cosines of the waves may differ in their last
// bits between libraries, which the rounding of pixels to 8 bits hides almost always.
double noise(Draw& draw) {
  double sum = -2;
  for (int i = 0; i < 4; ++i) sum += draw.uniform();
  return 1.7320508075688772 * sum;
}

using Heights = std::array<double, kPictureSide * kPictureSide>;  // of a wave, by pixel

Heights heights_of(const Wave& wave, double phase) {
  Heights heights;
  double* at = heights.data();
  for (std::int64_t y = 0; y < kPictureSide; ++y) {
    for (std::int64_t x = 0; x < kPictureSide; ++x) {
      const double turns = wave.across * double(x) + wave.down * double(y) + phase;
      *at++ = std::sin(kTurn * turns);
    }
  }
  return heights;
}

void draw_texture(const Texture& texture, Draw draw, std::uint8_t* pixels) {
  std::array<Heights, kWaves> waves;
  for (std::size_t i = 0; i < kWaves; ++i) waves[i] = heights_of(texture[i], draw.uniform());
  for (std::size_t colour = 0; colour < kColoursOfWave; ++colour) {
    for (std::size_t pixel = 0; pixel < waves[0].size(); ++pixel) {
      double value = kNoise * noise(draw);
      for (std::size_t i = 0; i < kWaves; ++i) {
        value += texture[i].colour[colour] * waves[i][pixel];
      }
      const double share = std::clamp((value + kFull) / (2 * kFull), 0.0, 1.0);
      *pixels++ = static_cast<std::uint8_t>(255 * share + 0.5);
    }
  }
}

}  // namespace

std::vector<std::string> texture_classes() {
  std::vector<std::string> names;
  for (int i = 0; i < kTextures; ++i) names.push_back(fmt::format("texture{}", i));
  return names;
}

Pictures make_textures(std::int64_t n, std::uint64_t seed, std::string_view part,
                       std::int64_t first) {
  check(n > 0 && n < std::int64_t{1} << 32, ErrorKind::kUsage,
        "[textures] rows: expected 1 to 4294967295, got {}", n);
  const std::array<Texture, kTextures> textures = class_textures();
  const std::uint32_t order = stream_of(fmt::format("textures.{}.labels", part));
  const std::uint32_t images = stream_of(fmt::format("textures.{}.images", part));
  Pictures pictures = Pictures::of_size(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int32_t label = texture_of(seed, order, first + i);
    pictures.label.as<std::int32_t>()[std::size_t(i)] = label;
    draw_texture(textures[std::size_t(label)], Draw(seed, images, std::uint32_t(first + i)),
                 pictures.picture(i));
  }
  return pictures;
}

}  // namespace keel::data
