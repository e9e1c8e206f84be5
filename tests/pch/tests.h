// Precompiled to save build time. No file relies on it: each includes what it uses.
// A guard, not the pragma: compiled as the main file, the pragma is a warning.
#ifndef KEEL_TESTS_PCH_TESTS_H_
#define KEEL_TESTS_PCH_TESTS_H_

#include <doctest/doctest.h>

#include "src/pch/keel.h"
#include "src/runtime/program.h"

#endif
