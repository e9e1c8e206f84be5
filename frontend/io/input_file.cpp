// Reads through stdio; the size is that of the open file.
#include "frontend/io/input_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "frontend/io/files_read.h"
#include "src/core/error.h"

namespace keel::io {

InputFile::InputFile(const std::filesystem::path& path) : path_(path.string()) {
  struct stat status {};
  // Asked before opening, for opening a pipe would wait for its writer.
  if (::stat(path_.c_str(), &status) != 0) fail_call("open");
  check(S_ISREG(status.st_mode), ErrorKind::kBadInput,
        "[file] {}: expected a regular file, got another kind", path_);
  file_.reset(std::fopen(path_.c_str(), "rbe"));
  if (!file_ || ::fstat(::fileno(file_.get()), &status) != 0) fail_call("open");
  note_read(::fileno(file_.get()));
  size_ = status.st_size;
}

void InputFile::fail_call(std::string_view call) const {
  const int error = errno;
  fail(ErrorKind::kIo, "[file] {}: {}: {}", path_, call, std::generic_category().message(error));
}

void InputFile::read(std::int64_t offset, void* bytes, std::int64_t size) {
  if (::fseeko(file_.get(), offset, SEEK_SET) != 0) fail_call("seek");
  const std::size_t got = std::fread(bytes, 1, static_cast<std::size_t>(size), file_.get());
  if (std::ferror(file_.get())) fail_call("read");
  check(std::int64_t(got) == size, ErrorKind::kBadInput,
        "[file] {}: expected {} bytes at byte {}, got {}", path_, size, offset, got);
}

std::string InputFile::read_all() {
  std::string bytes(static_cast<std::size_t>(size_), '\0');
  read(0, bytes.data(), size_);
  return bytes;
}

}  // namespace keel::io
