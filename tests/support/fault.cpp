// The faulty table of system calls. Plain function pointers cannot carry state, hence the globals.
#include "tests/support/fault.h"

#include <unistd.h>

#include <algorithm>

#include "frontend/io/atomic_file.h"

namespace keel::test {
namespace {

io::FileCalls real_calls;
Fault current;
int call_count = 0;

// Counts a call; true when it is to fail, with errno set.
bool consecutive_non_finite(bool needs_space) {
  const int number = call_count++;
  const bool later = current.lasting && needs_space && number > current.at;
  if (current.at < 0 || (number != current.at && !later)) return false;
  if (current.crash) ::_exit(9);
  errno = current.error;
  return true;
}

int faulty_open(const char* path, int flags, mode_t mode) {
  return consecutive_non_finite(true) ? -1 : real_calls.open(path, flags, mode);
}

ssize_t faulty_write(int fd, const void* bytes, std::size_t size) {
  if (current.crash && call_count == current.at) real_calls.write(fd, bytes, size / 2);
  if (consecutive_non_finite(true)) return -1;
  return current.chunk == 0 ? 0 : real_calls.write(fd, bytes, std::min(size, current.chunk));
}

int faulty_fsync(int fd) { return consecutive_non_finite(true) ? -1 : real_calls.fsync(fd); }

int faulty_close(int fd) {
  const bool struck = consecutive_non_finite(false);
  const int result = real_calls.close(fd);  // closes even when it reports an error, as Linux does
  if (!struck) return result;
  errno = current.error;
  return -1;
}

int faulty_rename(const char* from, const char* to) {
  return consecutive_non_finite(true) ? -1 : real_calls.rename(from, to);
}

int faulty_unlink(const char* path) {
  return consecutive_non_finite(false) ? -1 : real_calls.unlink(path);
}

}  // namespace

FaultGuard::FaultGuard(const Fault& fault) {
  real_calls = io::file_calls();
  current = fault;
  call_count = 0;
  io::file_calls() = {faulty_open,  faulty_write,  faulty_fsync,
                      faulty_close, faulty_rename, faulty_unlink};
}

FaultGuard::~FaultGuard() { io::file_calls() = real_calls; }

int FaultGuard::calls() const { return call_count; }

}  // namespace keel::test
