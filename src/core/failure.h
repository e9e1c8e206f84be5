// What an exception of any kind is to the user: a line of text, and through its kind an exit code.
#pragma once

#include <string>

#include "src/core/error.h"

namespace keel {

struct Failure {
  ErrorKind kind;
  std::string text;
};

// Of the exception that is being handled. Error has its own kind; what the system refuses is I/O,
// or memory where it is short of threads and processes, and so is std::bad_alloc; everything else
// is a bug of keel.
Failure current_failure();

}  // namespace keel
