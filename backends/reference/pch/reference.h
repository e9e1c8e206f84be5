// Precompiled to save build time. No file relies on it: each includes what it uses.
// Guarded without the pragma, which is a warning in a file compiled by itself.
#ifndef KEEL_BACKENDS_REFERENCE_PCH_REFERENCE_H_
#define KEEL_BACKENDS_REFERENCE_PCH_REFERENCE_H_

#include <Eigen/Core>

#include "src/pch/keel.h"

#endif
