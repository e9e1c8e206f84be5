// The knots of every glyph, drawn by hand.
#include "frontend/data/digit_shapes.h"

#include <algorithm>
#include <array>

namespace keel::data {
namespace {

constexpr Join kStart = Join::kStart;
constexpr Join kCorner = Join::kCorner;

constexpr Knot kZeroRound[] = {{6, 1, kStart}, {-17, 11}, {-28, 50}, {-17, 90}, {3, 99},
                               {21, 87},       {28, 48},  {17, 11},  {0, 2}};
constexpr Knot kZeroNarrow[] = {{10, 5, kStart}, {-10, 13}, {-20, 55}, {-8, 97},
                                {12, 88},        {20, 45},  {8, 5},    {-9, 8}};
constexpr Knot kZeroOpen[] = {{-3, 8, kStart}, {-23, 32}, {-25, 72}, {-3, 99},
                              {21, 79},        {25, 35},  {8, 2},    {-10, 9}};

constexpr Knot kOneBar[] = {{1, 0, kStart}, {0, 50}, {0, 100}};
constexpr Knot kOneFlag[] = {{-12, 26, kStart}, {3, 0, kCorner}, {3, 50}, {2, 100}};
constexpr Knot kOneBase[] = {{-12, 24, kStart}, {3, 0, kCorner},   {2, 50},
                             {1, 98},           {-18, 99, kStart}, {20, 98}};

constexpr Knot kTwoPlain[] = {{-22, 24, kStart}, {-13, 6},           {6, 0},  {21, 16}, {17, 40},
                              {-4, 71},          {-26, 98, kCorner}, {28, 97}};
constexpr Knot kTwoLoop[] = {{-22, 22, kStart}, {-5, 2},   {16, 8},   {20, 32}, {2, 68},
                             {-16, 94},         {-27, 86}, {-13, 80}, {9, 95},  {30, 90}};
constexpr Knot kTwoAngular[] = {{-22, 11, kStart},  {0, 2},  {20, 12}, {11, 44},
                                {-24, 98, kCorner}, {26, 98}};

constexpr Knot kThreeRound[] = {{-20, 10, kStart}, {1, 0},   {20, 19}, {9, 42},  {-6, 48, kCorner},
                                {16, 56},          {24, 77}, {4, 99},  {-22, 90}};
constexpr Knot kThreeFlat[] = {{-21, 2, kStart}, {20, 2, kCorner}, {-4, 40, kCorner}, {17, 51},
                               {24, 76},         {2, 100},         {-23, 90}};
constexpr Knot kThreeCurl[] = {{-20, 14, kStart}, {3, 1},   {19, 20}, {3, 45},  {-9, 46},
                               {2, 49},           {22, 70}, {10, 97}, {-23, 92}};

constexpr Knot kFourOpen[] = {
    {-16, 2, kStart}, {-24, 56, kCorner}, {27, 54}, {13, 20, kStart}, {10, 100}};
constexpr Knot kFourClosed[] = {
    {11, 0, kStart}, {-26, 64, kCorner}, {28, 62}, {12, 2, kStart}, {10, 100}};
constexpr Knot kFourCup[] = {{-24, 4, kStart}, {-25, 38}, {-7, 53}, {15, 46},
                             {23, 4, kCorner}, {16, 60},  {12, 100}};

constexpr Knot kFivePlain[] = {{22, 2, kStart}, {-15, 2, kCorner}, {-19, 45, kCorner}, {4, 38},
                               {24, 63},        {8, 97},           {-22, 93}};
constexpr Knot kFiveTwoStrokes[] = {
    {-13, 4, kStart}, {-18, 45, kCorner}, {6, 39},          {23, 66},
    {5, 98},          {-23, 91},          {-13, 4, kStart}, {25, 0}};
constexpr Knot kFiveCurved[] = {{23, 4, kStart}, {-5, 4}, {-17, 26}, {3, 46},
                                {21, 71},        {1, 98}, {-22, 90}};

constexpr Knot kSixRound[] = {{14, 0, kStart}, {-11, 24}, {-24, 66}, {-7, 98},
                              {19, 86},        {17, 60},  {-4, 55},  {-22, 74}};
constexpr Knot kSixStraight[] = {{2, 0, kStart}, {-16, 40}, {-20, 82}, {1, 100},
                                 {22, 80},       {9, 58},   {-9, 63},  {-19, 80}};
constexpr Knot kSixWide[] = {{20, 7, kStart}, {-8, 14}, {-25, 54}, {-13, 94},
                             {12, 96},        {22, 70}, {4, 50},   {-20, 63}};

constexpr Knot kSevenPlain[] = {{-26, 3, kStart}, {25, 2, kCorner}, {4, 50}, {-10, 100}};
constexpr Knot kSevenCrossed[] = {{-25, 3, kStart}, {25, 2, kCorner},  {4, 50},
                                  {-9, 100},        {-17, 53, kStart}, {22, 49}};
constexpr Knot kSevenSerif[] = {
    {-26, 19, kStart}, {-24, 3, kCorner}, {25, 3, kCorner}, {3, 54}, {-6, 100}};
constexpr Knot kSevenCurved[] = {{-25, 11, kStart}, {-8, 2}, {21, 7}, {10, 45}, {-3, 100}};

constexpr Knot kEightLoop[] = {{17, 13, kStart}, {-2, 0},   {-18, 19}, {0, 46},  {20, 74},
                               {0, 100},         {-20, 76}, {1, 46},   {18, 21}, {13, 7}};
constexpr Knot kEightRings[] = {{2, 46, kStart}, {-16, 24}, {0, 0},   {18, 22}, {2, 46},
                                {2, 46, kStart}, {-22, 74}, {0, 100}, {22, 74}, {2, 46}};
constexpr Knot kEightSlim[] = {{15, 6, kStart}, {-4, 3},   {-14, 22}, {2, 47}, {14, 76},
                               {-1, 99},        {-14, 78}, {2, 47},   {18, 10}};

constexpr Knot kNineStem[] = {{20, 10, kStart}, {0, 0},           {-20, 23}, {-4, 46},
                              {18, 30},         {20, 6, kCorner}, {17, 60},  {14, 100}};
constexpr Knot kNineTail[] = {{20, 18, kStart}, {0, 0},   {-20, 24}, {-3, 48},
                              {20, 22},         {22, 55}, {9, 93},   {-20, 95}};
constexpr Knot kNineSlanted[] = {{17, 12, kStart}, {-7, 2},          {-22, 27}, {-5, 46},
                                 {17, 22},         {20, 8, kCorner}, {6, 58},   {-2, 100}};

constexpr std::array kZero{Glyph(kZeroRound), Glyph(kZeroNarrow), Glyph(kZeroOpen)};
constexpr std::array kOne{Glyph(kOneBar), Glyph(kOneFlag), Glyph(kOneBase)};
constexpr std::array kTwo{Glyph(kTwoPlain), Glyph(kTwoLoop), Glyph(kTwoAngular)};
constexpr std::array kThree{Glyph(kThreeRound), Glyph(kThreeFlat), Glyph(kThreeCurl)};
constexpr std::array kFour{Glyph(kFourOpen), Glyph(kFourClosed), Glyph(kFourCup)};
constexpr std::array kFive{Glyph(kFivePlain), Glyph(kFiveTwoStrokes), Glyph(kFiveCurved)};
constexpr std::array kSix{Glyph(kSixRound), Glyph(kSixStraight), Glyph(kSixWide)};
constexpr std::array kSeven{Glyph(kSevenPlain), Glyph(kSevenCrossed), Glyph(kSevenSerif),
                            Glyph(kSevenCurved)};
constexpr std::array kEight{Glyph(kEightLoop), Glyph(kEightRings), Glyph(kEightSlim)};
constexpr std::array kNine{Glyph(kNineStem), Glyph(kNineTail), Glyph(kNineSlanted)};

using Glyphs = std::span<const Glyph>;
constexpr std::array<Glyphs, 10> kDigits{kZero, kOne, kTwo,   kThree, kFour,
                                         kFive, kSix, kSeven, kEight, kNine};

constexpr bool fits(Glyph glyph) {
  return glyph.size() <= kMaxKnots && glyph.front().join == kStart;
}
static_assert(std::ranges::all_of(kDigits, [](Glyphs g) { return std::ranges::all_of(g, fits); }));

}  // namespace

std::span<const Glyph> glyphs_of(int digit) { return kDigits[static_cast<std::size_t>(digit)]; }

}  // namespace keel::data
