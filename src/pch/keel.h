// Precompiled to save build time. No file relies on it: each includes what it uses.
// Guarded without the pragma, which is a warning in a file compiled by itself.
#ifndef KEEL_SRC_PCH_KEEL_H_
#define KEEL_SRC_PCH_KEEL_H_

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#endif
