#include "models/order_embeddings/builtin.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "frontend/data/draw.h"
#include "src/core/rng.h"

namespace keel::models {
namespace {

constexpr std::uint64_t kShapesKey = 20151119;  // of all numbers drawn here
constexpr int kNouns = 20, kColours = 8, kSizes = 4, kObjects = 3;
constexpr int kAttributes = kNouns + kColours + kColours * kSizes;
constexpr int kFeatureWidth = 256;
constexpr double kFeatureNoise = 0.1;
constexpr std::uint32_t kAttributeMap = stream_of("shapes.map");

constexpr std::array<std::string_view, kNouns> kNounWords = {
    "ball", "cup",  "box",  "ring", "star", "cone", "cube", "disk", "bowl", "key",
    "lamp", "book", "shoe", "drum", "kite", "boat", "bell", "coin", "leaf", "vase"};
constexpr std::array<std::string_view, kColours> kColourWords = {
    "red", "green", "blue", "yellow", "black", "white", "brown", "pink"};
constexpr std::array<std::string_view, kSizes> kSizeWords = {"tiny", "small", "big", "huge"};

struct Thing {
  int noun, colour, size;
  std::string_view name() const { return kNounWords[std::size_t(noun)]; }
  std::string_view hue() const { return kColourWords[std::size_t(colour)]; }
  std::string_view extent() const { return kSizeWords[std::size_t(size)]; }
};
using Scene = std::array<Thing, kObjects>;

Scene draw_scene(data::Draw& draw) {
  Scene scene{};
  for (std::size_t i = 0; i < scene.size(); ++i) {
    const auto taken = [&](int noun) {
      return std::any_of(scene.begin(), scene.begin() + std::ptrdiff_t(i),
                         [noun](const Thing& thing) { return thing.noun == noun; });
    };
    do scene[i].noun = draw.below(kNouns);
    while (taken(scene[i].noun));
    scene[i].colour = draw.below(kColours);
    scene[i].size = draw.below(kSizes);
  }
  return scene;
}

std::string describe(const Scene& scene, data::Draw& draw) {
  const int first = draw.below(kObjects);
  const int second = (first + 1 + draw.below(kObjects - 1)) % kObjects;
  const Thing &a = scene[std::size_t(first)], &b = scene[std::size_t(second)];
  switch (draw.below(5)) {
    case 0:
      return fmt::format("a {} {} {}", a.extent(), a.hue(), a.name());
    case 1:
      return fmt::format("a {} {} {} and a {}", a.extent(), a.hue(), a.name(), b.name());
    case 2:
      return fmt::format("there is a {} {} next to a {} {}", a.hue(), a.name(), b.hue(), b.name());
    case 3:
      return fmt::format("one {} behind a {} {} {}", a.name(), b.extent(), b.hue(), b.name());
    default:
      return fmt::format("a {} {} {} with a {} {} {}", a.extent(), a.hue(), a.name(), b.extent(),
                         b.hue(), b.name());
  }
}

std::array<int, kAttributes> attributes_of(const Scene& scene) {
  std::array<int, kAttributes> counts{};
  for (const Thing& thing : scene) {
    ++counts[std::size_t(thing.noun)];
    ++counts[std::size_t(kNouns + thing.colour)];
    ++counts[std::size_t(kNouns + kColours + thing.colour * kSizes + thing.size)];
  }
  return counts;
}

// A, row by row.
std::vector<double> attribute_map() {
  const Philox random(kShapesKey, kAttributeMap);
  std::vector<double> map(std::size_t{kFeatureWidth} * kAttributes);
  for (std::size_t e = 0; e < map.size(); ++e) map[e] = random.normal(e);
  return map;
}

void put_features(const Scene& scene, const std::vector<double>& map, const Philox& noise,
                  std::span<float> row) {
  const std::array<int, kAttributes> counts = attributes_of(scene);
  for (std::size_t k = 0; k < row.size(); ++k) {
    double sum = kFeatureNoise * noise.normal(k);
    for (std::size_t a = 0; a < counts.size(); ++a) sum += map[k * kAttributes + a] * counts[a];
    row[k] = float(std::max(sum, 0.0));
  }
}

DescribedImages make_scenes(std::string_view part, std::uint32_t count) {
  const std::uint32_t stream = stream_of(fmt::format("shapes.{}", part));
  const std::uint32_t noise = stream_of(fmt::format("shapes.{}.noise", part));
  const std::vector<double> map = attribute_map();
  DescribedImages images;
  images.features = Tensor(DType::kF32, {count, kFeatureWidth});
  for (std::uint32_t i = 0; i < count; ++i) {
    data::Draw draw(kShapesKey, stream, i);
    const Scene scene = draw_scene(draw);
    put_features(
        scene, map, Philox(kShapesKey, noise, i),
        images.features.as<float>().subspan(std::size_t{i} * kFeatureWidth, kFeatureWidth));
    for (int k = 0; k < kCaptionsAnImage; ++k) images.captions.push_back(describe(scene, draw));
  }
  scale_to_unit_length(images.features);
  return images;
}

}  // namespace

CaptionCorpus make_shapes() {
  CaptionCorpus corpus;
  corpus.name = "shapes";
  corpus.origin = "built-in images of three objects";
  corpus.train = make_scenes("train", 4000);
  corpus.valid = make_scenes("valid", 500);
  corpus.test = [] { return make_scenes("test", 500); };
  return corpus;
}

}  // namespace keel::models
