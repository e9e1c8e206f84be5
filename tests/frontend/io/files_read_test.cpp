// Which files were read, and by which name that is known.
#include "frontend/io/files_read.h"

#include <doctest/doctest.h>

#include <cstdio>

#include "frontend/io/input_file.h"
#include "frontend/io/packed_file.h"
#include "tests/support/temp_dir.h"

namespace keel::io {
namespace {

namespace fs = std::filesystem;

TEST_CASE("files read: every reader takes its file down, by whatever name it is asked for") {
  const test::TempDir temp;
  for (const char* name : {"a", "b", "c", "d", "e"}) test::write_bytes(temp / name, "content");
  CHECK_FALSE(was_read(temp / "a"));
  const InputFile a(temp / "a");
  const PackedFile b(temp / "b", 100);
  note_read(temp / "c");
  std::FILE* d = std::fopen((temp / "d").c_str(), "rb");
  note_read(fileno(d));
  std::fclose(d);
  for (const char* name : {"a", "b", "c", "d"}) CHECK(was_read(temp / name));
  CHECK_FALSE(was_read(temp / "e"));
  fs::create_symlink("a", temp / "soft");
  fs::create_hard_link(temp / "b", temp / "hard");
  CHECK(was_read(temp / "soft"));
  CHECK(was_read(temp / "hard"));
  CHECK(was_read(temp / "." / "c"));
}

TEST_CASE("files read: what is not there or no file does not count") {
  const test::TempDir temp;
  note_read(temp / "nothing");
  CHECK_FALSE(was_read(temp / "nothing"));
  note_read(temp.path());
  CHECK_FALSE(was_read(temp.path()));
  note_read(fs::path("/dev/null"));
  CHECK_FALSE(was_read("/dev/null"));
}

}  // namespace
}  // namespace keel::io
