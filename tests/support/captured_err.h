// The text that an action writes to standard error, which meanwhile is a plain file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "tests/support/temp_dir.h"

namespace keel::test {

inline std::string captured_err(const std::function<void()>& action) {
  const TempDir temp;
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  const int file = open((temp / "err").c_str(), O_WRONLY | O_CREAT, 0600);
  dup2(file, STDERR_FILENO);
  action();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(file);
  close(saved);
  return read_bytes(temp / "err");
}

}  // namespace keel::test
