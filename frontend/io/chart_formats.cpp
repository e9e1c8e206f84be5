#include "frontend/io/chart_formats.h"

#include <fcntl.h>

#include <chrono>
#include <string>
#include <thread>

#include "frontend/io/child.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

namespace fs = std::filesystem;

// Its exit code. What it says on standard output is dropped; if it is silent, its errors, too.
int run_converter(const std::vector<std::string>& arguments, bool is_silent = false) {
  // A PDF has the time in it at which it was made, unless this variable gives another.
  std::vector<std::string> command{"env", "SOURCE_DATE_EPOCH=0", "rsvg-convert"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Descriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  Child child(command, {.out = nowhere.get(), .err = is_silent ? nowhere.get() : -1});
  for (;;) {
    if (const auto code = child.ended()) return *code;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

fs::path convert(const fs::path& svg, const std::string& format) {
  fs::path made = svg, part = svg;
  made.replace_extension(format);
  part.replace_extension(format + ".part");
  const int code =
      run_converter({"--format=" + format, "--zoom=" + std::string(format == "png" ? "2" : "1"),
                     "--output=" + part.string(), "--", svg.string()});
  std::error_code error;
  if (code == 0) {
    fs::rename(part, made, error);
  } else {
    fs::remove(part, error);
  }
  check(code == 0 && !error, ErrorKind::kIo, "{}: rsvg-convert cannot write it: {}", made.string(),
        code == 0 ? error.message() : fmt::format("exit code {}", code));
  return made;
}

}  // namespace

void expect_converter(const ChartFormats& formats) {
  if (!formats.pdf && !formats.png) return;
  check(run_converter({"--version"}, true) == 0, ErrorKind::kIo,
        "rsvg-convert, which makes PDF and PNG files: expected it in PATH (the package "
        "librsvg2-bin)");
}

std::vector<fs::path> write_formats(const fs::path& svg, const ChartFormats& formats) {
  std::vector<fs::path> made;
  if (formats.pdf) made.push_back(convert(svg, "pdf"));
  if (formats.png) made.push_back(convert(svg, "png"));
  return made;
}

}  // namespace keel::io
