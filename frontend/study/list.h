// The studies, one function each; study.cpp names them for the program.
#pragma once

#include "frontend/study/study.h"

namespace keel::study {}  // namespace keel::study
