// The activation that a matrix product or a convolution applies to its result as it writes it.
#pragma once

#include "src/core/choice.h"

namespace keel {

enum class Activation { kNone, kRelu };
constexpr auto choice_words(Activation) {
  return std::to_array<std::string_view>({"none", "relu"});
}

}  // namespace keel
