// Pictures of any size brought to the size that a network takes.
#pragma once

#include "frontend/io/picture.h"

namespace keel::data {

// The middle square of a picture as (3, side, side). A pixel is the mean of what it covers of the
// picture, rounded, so a picture of side x side pixels stays as it is.
std::vector<std::uint8_t> planes_of(const io::Picture& picture, std::int64_t side);

// The same in grey, as (side, side): 0.299 red + 0.587 green + 0.114 blue, rounded
// as Pillow's convert("L") does.
std::vector<std::uint8_t> grey_of(const io::Picture& picture, std::int64_t side);

}  // namespace keel::data
