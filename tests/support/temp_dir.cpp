// Temporary directories and plain whole-file reading and writing for tests.
#include "tests/support/temp_dir.h"

#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <system_error>

#include "src/core/error.h"

namespace keel::test {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "keel-test-XXXXXX").string();
  check(::mkdtemp(name.data()) != nullptr, ErrorKind::kIo, "[temp_dir] cannot make {}", name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  check(bool(in), ErrorKind::kIo, "[temp_dir] cannot read {}", path.string());
  return bytes;
}

void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), std::ssize(bytes));
  out.close();
  check(bool(out), ErrorKind::kIo, "[temp_dir] cannot write {}", path.string());
}

}  // namespace keel::test
