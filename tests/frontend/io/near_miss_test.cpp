// Files that a folder holds in place of the one that was looked for.
#include "frontend/io/near_miss.h"

#include "tests/support/input_checks.h"

namespace keel::io {
namespace {

using test::write_bytes;

TEST_CASE("near misses: names in their order, letters large or small, a few alone") {
  const test::TempDir folder;
  CHECK(near_misses(folder.path(), {".conllu"}) == "");
  CHECK(near_misses(folder / "none", {".conllu"}) == "");
  write_bytes(folder / "y.CoNLLU.gz", "a");
  write_bytes(folder / "x.conllu", "a");
  write_bytes(folder / "z.txt", "a");
  CHECK(near_misses(folder.path(), {".conllu"}) == " (found x.conllu, y.CoNLLU.gz)");
  CHECK(near_misses(folder.path(), {".conllu"}, "none ends in train") ==
        " (found x.conllu, y.CoNLLU.gz: none ends in train)");
  CHECK(near_misses(folder.path(), {"y.", "z"}) == " (found y.CoNLLU.gz, z.txt)");
  for (int i = 0; i < 8; ++i) write_bytes(folder / fmt::format("n{}.dp", i), "a");
  CHECK(near_misses(folder.path(), {".dp"}) ==
        " (found n0.dp, n1.dp, n2.dp, n3.dp, n4.dp and 3 more)");
}

}  // namespace
}  // namespace keel::io
