// Hidden files, and what readers say of files that they leave out.
#include "frontend/io/visible_files.h"

#include <doctest/doctest.h>

#include "tests/support/temp_dir.h"

namespace keel::io {
namespace {

namespace fs = std::filesystem;

TEST_CASE("visible files: hidden is what begins with a dot, in any folder on the way") {
  for (const char* name : {".a", "._a.txt", "d/.a", ".d/a", "./._a", "d/./.e/a"}) {
    CAPTURE(name);
    CHECK(is_hidden(name));
  }
  for (const char* name : {"", "a", "./a", "../a", "d/../a", "a.txt", "d./a", "/d/a", "a/"}) {
    CAPTURE(name);
    CHECK_FALSE(is_hidden(name));
  }
}

TEST_CASE("visible files: entries in order, files of all folders, and counts of the others") {
  const test::TempDir temp;
  for (const char* folder : {"b", "b/.cache", "b/d"}) fs::create_directory(temp / folder);
  for (const char* file : {"c.txt", "._c.txt", "b/d/e", "b/.cache/f", "b/A.PNG"}) {
    test::write_bytes(temp / file, "x");
  }
  std::error_code error;
  SkippedFiles skipped;
  CHECK(visible_entries(temp.path(), error, &skipped) ==
        std::vector<fs::path>{temp / "b", temp / "c.txt"});
  CHECK(skipped.note() == "; left out: hidden: 1");
  CHECK(visible_files_below(temp.path(), error, &skipped) ==
        std::vector<fs::path>{temp / "b/A.PNG", temp / "b/d/e", temp / "c.txt"});
  CHECK_FALSE(error);
  skipped.add_ending("b/A.PNG");
  skipped.add_ending("b/d/e");
  CHECK(skipped.note() == "; left out: .png: 1, hidden: 3, without an ending: 1");
  CHECK(visible_entries(temp / "none", error).empty());
  CHECK(error);
}

}  // namespace
}  // namespace keel::io
