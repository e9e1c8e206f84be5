#include "tests/fuzz/target.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "src/core/error.h"

namespace keel::fuzz {

std::vector<Target> all_targets() {
  std::vector<Target> all;
  for (const auto targets :
       {io_targets(), text_targets(), task_targets(), train_targets(), recipe_targets()}) {
    all.insert(all.end(), targets.begin(), targets.end());
  }
  return all;
}

void run_target(const Target& target, std::string_view bytes) {
  try {
    target.read(bytes);
  } catch (const Error& error) {
    const std::string_view text = error.what();
    expect(error.kind() != ErrorKind::kInternal, error.what());
    expect(!text.empty(), "an error without a message");
  }
}

void expect(bool holds, const char* message) {
  if (!holds) throw std::logic_error(message);
}

MemoryFile::MemoryFile(std::string_view bytes) : fd_(memfd_create("input", MFD_CLOEXEC)) {
  expect(fd_ >= 0, "no file in memory");
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    expect(written > 0, "a file in memory takes no bytes");
    bytes.remove_prefix(std::size_t(written));
  }
}

MemoryFile::~MemoryFile() { close(fd_); }

std::filesystem::path MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", fd_); }

}  // namespace keel::fuzz
