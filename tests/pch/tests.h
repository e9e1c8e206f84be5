// Precompiled to save build time. No file relies on it: each includes what it uses.
// Guarded without the pragma, which is a warning in a file compiled by itself.
#ifndef KEEL_TESTS_PCH_TESTS_H_
#define KEEL_TESTS_PCH_TESTS_H_

#include <doctest/doctest.h>

#include "src/pch/keel.h"
#include "src/runtime/program.h"

#endif
