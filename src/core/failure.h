// Turns any exception into what the user sees: a line of text, and an error kind, its exit code.
#pragma once

#include <string>

#include "src/core/error.h"

namespace keel {

struct Failure {
  ErrorKind kind;
  std::string text;
};

// Describes the exception that is being handled. An Error has its own kind. A system error is kIo,
// or kMemory if the system is short of threads, processes or memory; std::bad_alloc is kMemory. Any
// other exception is a bug in keel.
Failure current_failure();

}  // namespace keel
