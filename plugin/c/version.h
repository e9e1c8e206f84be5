// The version of the libraries of norms.
#pragma once

#include <string_view>

#include "plugin/c/keel/norm.h"

namespace keel::plugin {

// Libraries that exchange objects have the same version and the same interface.
inline constexpr std::string_view kVersion = KEEL_VERSION ", interface 2";
static_assert(KEEL_ABI == 2, "kVersion names it");

}  // namespace keel::plugin
