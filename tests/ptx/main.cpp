// Runs the tests of the interpreter of PTX; they need neither CUDA nor keel.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
