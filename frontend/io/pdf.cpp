#include "frontend/io/pdf.h"

#include <fcntl.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "frontend/io/child.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

namespace fs = std::filesystem;

// Its exit code. What it says on standard output is dropped.
int run_converter(const std::vector<std::string>& arguments) {
  // A PDF has the time in it at which it was made, unless this variable gives another.
  std::vector<std::string> command{"env", "SOURCE_DATE_EPOCH=0", "rsvg-convert"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Descriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  Child child(command, {.out = nowhere.get()});
  for (;;) {
    if (const auto code = child.ended()) return *code;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

void expect_pdf_converter() {
  check(run_converter({"--version"}) == 0, ErrorKind::kIo,
        "rsvg-convert, which makes PDF files: expected it in PATH (the package librsvg2-bin)");
}

fs::path write_pdf_of(const fs::path& svg) {
  fs::path pdf = svg, part = svg;
  pdf.replace_extension(".pdf");
  part.replace_extension(".pdf.part");
  const int code = run_converter({"--format=pdf", "--output=" + part.string(), "--", svg.string()});
  std::error_code error;
  if (code == 0) {
    fs::rename(part, pdf, error);
  } else {
    fs::remove(part, error);
  }
  check(code == 0 && !error, ErrorKind::kIo, "{}: rsvg-convert cannot write it: {}", pdf.string(),
        code == 0 ? error.message() : fmt::format("exit code {}", code));
  return pdf;
}

}  // namespace keel::io
