// Precompiled to save build time. No file relies on it: each includes what it uses.
#pragma once

#include <doctest/doctest.h>

#include "src/pch/keel.h"
#include "src/runtime/program.h"
