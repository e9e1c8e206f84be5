// Reading stays within the file, also when it shrinks meanwhile.
#include "frontend/io/input_file.h"

#include <doctest/doctest.h>

#include <string>

#include "src/core/error.h"
#include "tests/support/temp_dir.h"

using namespace keel;
using keel::io::InputFile;

TEST_CASE("input_file: reads parts and the whole") {
  const test::TempDir dir;
  test::write_bytes(dir / "f", "0123456789");
  InputFile file(dir / "f");
  CHECK(file.size() == 10);
  std::string part(4, ' ');
  file.read(3, part.data(), 4);
  CHECK(part == "3456");
  CHECK(file.read_all() == "0123456789");
  test::write_bytes(dir / "empty", "");
  CHECK(InputFile(dir / "empty").read_all().empty());
}

TEST_CASE("input_file: bytes that are not there are an error") {
  const test::TempDir dir;
  test::write_bytes(dir / "f", std::string(100000, 'x'));
  InputFile file(dir / "f");
  std::filesystem::resize_file(dir / "f", 10);
  try {
    file.read_all();
    FAIL("expected an error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    CHECK(std::string(error.what()).ends_with("expected 100000 bytes at byte 0, got 10"));
  }
}
