// Precompiled to save build time. No file relies on it: each includes what it uses.
// Guarded without the pragma, which is a warning in a file compiled by itself.
#ifndef KEEL_PROGRAM_PCH_PROGRAM_H_
#define KEEL_PROGRAM_PCH_PROGRAM_H_

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "src/pch/keel.h"

#endif
