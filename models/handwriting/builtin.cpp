#include "models/handwriting/builtin.h"

#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "src/core/rng.h"

namespace keel::models {
namespace {

constexpr std::uint64_t kKey = 20130804;  // of all numbers drawn here
constexpr std::string_view kLetters = "cilnouvz";
constexpr int kShortest = 6, kLongest = 8;
constexpr double kSizeSpread = 0.1, kLeanSpread = 0.15, kNoise = 0.05;

struct Place {
  double x, y;
};

// Letters stand on y = 0 and begin at x = 0; the next one begins 1 after the widest point.
constexpr Place kC[] = {{2.4, 2.6}, {1.7, 3.2}, {0.8, 3.1}, {0.2, 2.4}, {0, 1.5},
                        {0.3, 0.6}, {1, 0},     {1.8, 0.1}, {2.5, 0.7}};
constexpr Place kI[] = {{0.3, 3}, {0.3, 2.2}, {0.3, 1.4}, {0.3, 0.7},
                        {0.5, 0}, {1.1, 0.1}, {1.5, 0.6}, {1.8, 1.2}};
constexpr Place kL[] = {{0, 1.2},   {0.6, 2.2}, {1.1, 3.4}, {1.3, 4.6}, {0.9, 5.2}, {0.5, 4.4},
                        {0.4, 3.2}, {0.4, 2},   {0.5, 0.8}, {1.1, 0},   {1.8, 0.5}};
constexpr Place kN[] = {{0, 3},   {0, 2},     {0, 1},   {0, 0},   {0.1, 1.2}, {0.4, 2.2},
                        {1.1, 3}, {1.9, 2.9}, {2.2, 2}, {2.2, 1}, {2.4, 0},   {3, 0.4}};
constexpr Place kO[] = {{1.6, 3.1}, {0.7, 2.9}, {0.1, 2.1}, {0, 1.2},   {0.5, 0.3},
                        {1.4, 0},   {2.3, 0.4}, {2.7, 1.3}, {2.5, 2.3}, {1.8, 3}};
constexpr Place kU[] = {{0, 3},   {0, 2},     {0.1, 1},   {0.5, 0.2}, {1.3, 0},
                        {2, 0.5}, {2.3, 1.4}, {2.4, 2.3}, {2.4, 3.1}, {2.4, 2},
                        {2.4, 1}, {2.7, 0.1}, {3.2, 0.3}};
constexpr Place kV[] = {{0, 3},     {0.3, 2.2}, {0.7, 1.4}, {1, 0.7},  {1.3, 0},
                        {1.6, 0.8}, {1.9, 1.6}, {2.3, 2.4}, {2.7, 3.1}};
constexpr Place kZ[] = {{0, 3},     {0.8, 3}, {1.6, 3}, {2.4, 3}, {1.8, 2.2}, {1.2, 1.5},
                        {0.6, 0.8}, {0, 0},   {0.8, 0}, {1.6, 0}, {2.5, 0}};

constexpr std::array<std::span<const Place>, 8> kGlyphs = {kC, kI, kL, kN, kO, kU, kV, kZ};

double width_of(std::span<const Place> glyph) {
  double width = 0;
  for (const Place& p : glyph) width = std::max(width, p.x);
  return width;
}

// Normal numbers of a line, one after the other.
class Normals {
 public:
  Normals(std::uint32_t stream, std::uint32_t line) : random_(kKey, stream, line) {}
  double next(double deviation) { return deviation * random_.normal(count_++); }

 private:
  Philox random_;
  std::uint64_t count_ = 0;
};

WrittenLine make_line(std::uint32_t letters, std::uint32_t shapes, std::uint32_t number) {
  const Philox random(kKey, letters, number);
  Normals normals(shapes, number);
  const double size = 1 + normals.next(kSizeSpread), lean = normals.next(kLeanSpread);
  const std::uint32_t count = kShortest + random.below(0, kLongest - kShortest + 1);
  WrittenLine line;
  double begin = 0;
  Place last{0, 0};
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t letter = random.below(1 + i, std::uint32_t(kLetters.size()));
    const std::span<const Place> glyph = kGlyphs[letter];
    line.text.push_back(std::int32_t(letter));
    for (std::size_t p = 0; p < glyph.size(); ++p) {
      const Place at{begin + glyph[p].x + lean * glyph[p].y, glyph[p].y};
      PenPoint point{.dx = float(size * (at.x - last.x) + normals.next(kNoise)),
                     .dy = float(size * (at.y - last.y) + normals.next(kNoise)),
                     .lifts = p + 1 == glyph.size()};
      if (line.points.empty()) point.dx = point.dy = 0;
      line.points.push_back(point);
      last = at;
    }
    begin += width_of(glyph) + 1;
  }
  return line;
}

WrittenLines make_part(std::string_view part, std::uint32_t count) {
  const std::uint32_t letters = stream_of(fmt::format("glyph_strokes.{}.letters", part));
  const std::uint32_t shapes = stream_of(fmt::format("glyph_strokes.{}.shapes", part));
  WrittenLines lines;
  for (std::uint32_t i = 0; i < count; ++i) lines.push_back(make_line(letters, shapes, i));
  return lines;
}

}  // namespace

HandwritingCorpus make_glyph_strokes() {
  HandwritingCorpus corpus{{.name = "handwriting", .origin = "built-in glyph strokes"},
                           Alphabet(std::string(kLetters))};
  corpus.train = make_part("train", 2000);
  corpus.valid = make_part("valid", 200);
  corpus.test = [] { return make_part("test", 200); };
  return corpus;
}

}  // namespace keel::models
