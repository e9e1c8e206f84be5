// bench/check: what it says of a run beside the ratios kept for its processor.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace keel::bench {
namespace {

using test::TempDir;

struct Answer {
  int code;
  std::string text;
};

// Runs bench/check on files of a folder, with the ratios kept in that folder.
Answer check_in(const TempDir& temp, const std::string& arguments) {
  const std::string command = "cd '" + temp.path().string() +
                              "' && '" KEEL_SOURCE "/bench/check' --kept kept.json " + arguments +
                              " > out 2>&1";
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), test::read_bytes(temp / "out")};
}

// A run of `keel bench norms --json` with one row.
void write_norms(const std::string& path, double forward, double backward,
                 const std::string& processor = "P", const std::string& type = "f32") {
  std::ofstream(path) << R"({"processor": ")" << processor << R"(", "compute": ")" << type
                      << R"(", "backends": ["B, 2 threads"], "norms": [{"norm": "layernorm",
      "shape": [8, 16], "threads": 2, "forward": {"ratio": )"
                      << forward << R"(}, "backward": {"ratio": )" << backward << "}}]}";
}

// A run of `keel bench step --json`, `ratio` times as long as its products and optimizer.
void write_step(const std::string& path, double ratio, const std::string& type,
                const std::string& size = R"("batch": 8)") {
  std::ofstream(path) << R"({"processor": "P", "backend": "B, beside PyTorch", "model": "M", )"
                      << size << R"(, "compute": ")" << type << R"(", "ratio": )" << ratio << "}";
}

bool has_python() { return std::system("python3 -c pass > /dev/null 2>&1") == 0; }

TEST_CASE("bench/check: what fell by more than the noise is named" * doctest::test_suite("slow")) {
  if (!has_python()) {
    MESSAGE("skipped: there is no python3");
    return;
  }
  const TempDir temp;
  for (int i = 0; i < 3; ++i) {
    const std::string file = "kept" + std::to_string(i) + ".run";
    write_norms(temp / file, 0.9 + 0.05 * i, 0.5 + 0.2 * i);
    CHECK(check_in(temp, "--save " + file).code == 0);
  }
  write_norms(temp / "same.run", 0.82, 0.41);
  const Answer same = check_in(temp, "same.run");
  CHECK(same.code == 0);
  CHECK(same.text.find("P | B, 2 threads: 0 of 2 fell") != std::string::npos);
  // The forward's median is 0.95 and its least noise 15 %; the backward's 0.7 and 44 %.
  write_norms(temp / "slow.run", 0.80, 0.41);
  const Answer slow = check_in(temp, "slow.run");
  CHECK(slow.code == 1);
  CHECK(slow.text.find("layernorm 8x16 forward: 0.80, was 0.95 (noise 15%)") != std::string::npos);
  CHECK(slow.text.find("backward") == std::string::npos);
  write_norms(temp / "slower.run", 0.9, 0.38);
  CHECK(check_in(temp, "slower.run").text.find("layernorm 8x16 backward: 0.38, was 0.70") !=
        std::string::npos);
  // Another type has times of its own.
  write_norms(temp / "narrow.run", 0.1, 0.1, "P", "bf16");
  CHECK(check_in(temp, "narrow.run").text.find("none of these measurements is kept") !=
        std::string::npos);
  // The median of several runs counts.
  CHECK(check_in(temp, "same.run slow.run same.run").code == 0);
}

TEST_CASE("bench/check: a step is known by its model, batch and type" *
          doctest::test_suite("slow")) {
  if (!has_python()) {
    MESSAGE("skipped: there is no python3");
    return;
  }
  const TempDir temp;
  write_step(temp / "wide.run", 1.1, "f32");
  write_step(temp / "narrow.run", 1.5, "bf16");
  CHECK(check_in(temp, "--save wide.run narrow.run").code == 0);
  write_step(temp / "slow.run", 2.5, "bf16");
  const Answer slow = check_in(temp, "wide.run slow.run");
  CHECK(slow.code == 1);
  CHECK(slow.text.find("P | B: 1 of 2 fell\n  step M, batch 8, bf16: 0.40, was 0.67 (noise 15%)") !=
        std::string::npos);
  // A recurrent step has another size than a batch.
  const std::string size = R"("steps": 100, "rows": 8, "width": 400)";
  write_step(temp / "cell.run", 1.1, "f32", size);
  CHECK(check_in(temp, "--save cell.run").code == 0);
  write_step(temp / "cell.run", 2.2, "f32", size);
  const Answer cell = check_in(temp, "cell.run");
  CHECK(cell.code == 1);
  CHECK(cell.text.find("step M, 100 x 8, 400 wide: 0.45, was 0.91") != std::string::npos);
}

TEST_CASE("bench/check: another processor or another file has nothing to be compared with" *
          doctest::test_suite("slow")) {
  if (!has_python()) {
    MESSAGE("skipped: there is no python3");
    return;
  }
  const TempDir temp;
  write_norms(temp / "a.run", 1, 1);
  CHECK(check_in(temp, "--save a.run").code == 0);
  write_norms(temp / "other.run", 1, 1, "Q");
  const Answer other = check_in(temp, "other.run");
  CHECK(other.code == 3);
  CHECK(other.text.find("no ratios are kept for Q | B, 2 threads") != std::string::npos);
  std::ofstream(temp / "broken.run") << "{\"norms\": [";
  CHECK(check_in(temp, "broken.run").code == 3);
  std::ofstream(temp / "none.run") << "{}";
  CHECK(check_in(temp, "none.run").text.find("got one without 'processor'") != std::string::npos);
  CHECK(check_in(temp, "missing.run").code == 3);
}

}  // namespace
}  // namespace keel::bench
