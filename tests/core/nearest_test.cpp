// Suggestions for mistyped names.
#include "src/core/nearest.h"

#include <doctest/doctest.h>

#include <vector>

namespace keel::test {
namespace {

TEST_CASE("nearest: the smallest edit distance, the first on ties") {
  const std::vector<std::string> names{"layernorm", "batchnorm", "powernorm"};
  CHECK(nearest("lernorm", names) == "layernorm");
  CHECK(nearest("batch_norm", names) == "batchnorm");
  CHECK(nearest("powernom", names) == "powernorm");
  CHECK(nearest("", names) == "layernorm");
  CHECK(nearest("x", {}) == "");
  const std::vector<std::string> tie{"ab", "ac"};
  CHECK(nearest("ad", tie) == "ab");
  // Equal lengths do not help: one insertion and one deletion are nearer than three substitutions.
  const std::vector<std::string> shifted{"axyz", "bcda"};
  CHECK(nearest("abcd", shifted) == "bcda");
  // Characters that a name has too many, or too few, count.
  const std::vector<std::string> shorter{"batch", "batchnorm"}, longer{"normalization", "norms"};
  CHECK(nearest("batchnorm2d", shorter) == "batchnorm");
  CHECK(nearest("norm", longer) == "norms");
}

TEST_CASE("unknown_name: a sentence for error messages") {
  const std::vector<std::string> names{"layernorm"};
  CHECK(unknown_name("lernorm", names) == "'lernorm' is unknown; nearest: 'layernorm'");
  CHECK(unknown_name("x", {}) == "'x' is unknown");
}

}  // namespace
}  // namespace keel::test
