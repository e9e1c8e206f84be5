// A log cut off anywhere reads as the lines that were finished, and resumes as if never cut.
#include "frontend/io/metrics_log.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "src/core/error.h"
#include "tests/support/fault.h"
#include "tests/support/temp_dir.h"

using namespace keel;
using namespace keel::io;
using test::FaultGuard;
using test::read_bytes;
using test::TempDir;
using test::write_bytes;

namespace {

void write_steps(MetricsLog& log, int first, int last) {
  for (int step = first; step <= last; ++step) {
    log.write(step, {{"phase", "train"}, {"loss", 1.0 / step}});
    if (step % 3 == 0) log.write(step, {{"phase", "valid"}, {"accuracy", 0.5}});
  }
}

std::string bad_input(const std::filesystem::path& path) {
  try {
    read_metrics(path);
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    return error.what();
  }
}

}  // namespace

TEST_CASE("metrics_log: one object a line, in order") {
  const TempDir dir;
  const std::filesystem::path path = dir / "metrics.jsonl";
  MetricsLog log(path);
  log.write(1, {{"loss", 0.25}, {"name", "a\nb"}});
  CHECK(read_bytes(path) == "{\"step\":1,\"loss\":0.25,\"name\":\"a\\nb\"}\n");
  log.write(2, {{"loss", std::nan("")}});
  log.sync();
  const auto lines = read_metrics(path);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["name"] == "a\nb");
  CHECK(lines[1]["loss"].is_null());
  CHECK_THROWS_AS(log.write(3, {{"step", 4}}), Error);
  CHECK_THROWS_AS(log.write(3, nlohmann::ordered_json::array({1})), Error);
}

TEST_CASE("metrics_log: a log cut at any byte is readable and can go on") {
  const TempDir dir;
  const std::filesystem::path path = dir / "m";
  {
    MetricsLog log(path);
    write_steps(log, 1, 3);
  }
  const std::string whole = read_bytes(path);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    CAPTURE(size);
    write_bytes(path, whole.substr(0, size));
    const std::size_t finished =
        std::size_t(std::count(whole.begin(), whole.begin() + long(size), '\n'));
    CHECK(read_metrics(path).size() == finished);
    MetricsLog(path).write(9, {{"x", 1}});
    const auto lines = read_metrics(path);
    REQUIRE(lines.size() == finished + 1);
    CHECK(lines.back()["step"] == 9);
  }
}

TEST_CASE("metrics_log: resumed at any step it ends as if never interrupted") {
  const TempDir dir;
  const std::filesystem::path path = dir / "m";
  {
    MetricsLog log(path);
    write_steps(log, 1, 10);
  }
  const std::string whole = read_bytes(path);
  for (int step = 0; step <= 10; ++step) {
    CAPTURE(step);
    write_bytes(path, whole + "{\"step\":11,\"lo");
    MetricsLog log(path, step);
    write_steps(log, step + 1, 10);
    CHECK(read_bytes(path) == whole);
  }
}

TEST_CASE("metrics_log: lines that stay are kept to the byte") {
  const TempDir dir;
  const std::string odd = "{ \"step\" : 1, \"x\" : 1.50 }\n";
  write_bytes(dir / "m", odd + "{\"step\":5}\n{\"step\":2}\n");
  MetricsLog log(dir / "m", 2);
  CHECK(read_bytes(dir / "m") == odd + "{\"step\":2}\n");
}

TEST_CASE("metrics_log: a bad line is named by its number") {
  const TempDir dir;
  for (const char* bad : {"{\"step\":1", "[]", "", "{\"step\":\"1\"}", "{\"loss\":1}", "\xff"}) {
    CAPTURE(bad);
    write_bytes(dir / "m", "{\"step\":0}\n" + std::string(bad) + "\n{\"step\":2}\n");
    CHECK(bad_input(dir / "m") ==
          fmt::format("[metrics] {}:2: expected an object with an integer \"step\"",
                      (dir / "m").string()));
    CHECK_THROWS_AS(MetricsLog(dir / "m", 5), Error);
  }
  write_bytes(dir / "deep", std::string(100000, '[') + "\n");
  CHECK(bad_input(dir / "deep") != "");
  CHECK_THROWS_AS(read_metrics(dir / "missing"), Error);
  CHECK_THROWS_AS(read_metrics(dir.path()), Error);
}

TEST_CASE("metrics_log: a full disk is an error and what was there stays readable") {
  const TempDir dir;
  MetricsLog log(dir / "m");
  log.write(1, {{"x", 1}});
  {
    FaultGuard guard({.at = 1, .error = ENOSPC, .chunk = 5});
    CHECK_THROWS_WITH_AS(
        log.write(2, {{"x", 2}}),
        ("[file] " + (dir / "m").string() + ": write: disk full: No space left on device").c_str(),
        Error);
  }
  CHECK(read_metrics(dir / "m").size() == 1);
  FaultGuard guard({.at = 3, .error = EIO});  // mending goes through AtomicFile
  const std::string before = read_bytes(dir / "m");
  CHECK_THROWS_AS(MetricsLog(dir / "m"), Error);
  CHECK(read_bytes(dir / "m") == before);
}
