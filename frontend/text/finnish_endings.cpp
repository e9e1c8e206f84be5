#include "frontend/text/finnish_endings.h"

#include <algorithm>
#include <array>
#include <string>

namespace keel::text {
namespace {

using Ending = std::u32string_view;

constexpr std::array<Ending, 27> kCases = {
    U"n",        U"a",        U"\u00E4", U"an",       U"\u00E4n",  U"un",       U"yn",
    U"\u00F6n",  U"han",      U"hun",    U"hyn",      U"h\u00E4n", U"h\u00F6n", U"seen",
    U"ssa",      U"ss\u00E4", U"sta",    U"st\u00E4", U"lla",      U"ll\u00E4", U"lta",
    U"lt\u00E4", U"lle",      U"ksi",    U"kse",      U"tta",      U"ine"};
constexpr std::array<Ending, 6> kOwners = {U"", U"ni", U"si", U"mme", U"nne", U"nsa"};
constexpr std::array<Ending, 10> kParticles = {
    U"",        U"ko",   U"k\u00F6",        U"han", U"h\u00E4n", U"pa",
    U"p\u00E4", U"kaan", U"k\u00E4\u00E4n", U"kin"};

bool is_owner_and_particle(Ending rest) {
  return std::ranges::any_of(kOwners, [&](Ending owner) {
    return rest.starts_with(owner) &&
           std::ranges::find(kParticles, rest.substr(owner.size())) != kParticles.end();
  });
}

}  // namespace

bool is_finnish_ending(std::u32string_view word) {
  std::u32string lower(word);
  const bool capital =
      !lower.empty() && Ending(U"NAUYHSLKTI\u00C4\u00D6").find(lower[0]) != Ending::npos;
  if (capital) lower[0] += 0x20;
  return std::ranges::any_of(kCases, [&](Ending ending) {
    return lower.starts_with(ending) && is_owner_and_particle(Ending(lower).substr(ending.size()));
  });
}

}  // namespace keel::text
