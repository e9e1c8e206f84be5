#include "program/outputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "frontend/io/files_read.h"
#include "frontend/train/run_log.h"
#include "src/core/error.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;

// The folder and the name that writing to this path would lead to, links followed.
fs::path real_path(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(path), error);
  return error ? path : real;
}

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code missing;
  return real_path(a) == real_path(b) || fs::equivalent(a, b, missing);
}

void expect_folder(const Output& output) {
  const fs::path folder = real_path(output.path).parent_path();
  std::error_code error;
  check(fs::is_directory(folder, error), ErrorKind::kIo, "{} {}: there is no folder {}",
        output.option, output.path, folder.string());
}

}  // namespace

void expect_apart(const std::vector<Output>& outputs, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) io::note_read(fs::path(input));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Output& output = outputs[i];
    if (output.path.empty()) continue;
    check(!train::is_file_of_run(real_path(output.path)), ErrorKind::kUsage,
          "{} {}: this file belongs to a run; give another one to write to", output.option,
          output.path);
    check(!io::was_read(output.path), ErrorKind::kUsage,
          "{} {}: this file is read by the same command; give another one to write to",
          output.option, output.path);
    for (std::size_t j = 0; j < i; ++j) {
      check(outputs[j].path.empty() || !is_same_file(output.path, outputs[j].path),
            ErrorKind::kUsage, "{} {}: this is the same file as {} {}; give another one",
            output.option, output.path, outputs[j].option, outputs[j].path);
    }
    expect_folder(output);
  }
}

void expect_streams_apart() {
  struct stat in {
  }, out{};
  if (fstat(STDIN_FILENO, &in) != 0 || fstat(STDOUT_FILENO, &out) != 0) return;
  const bool is_same = S_ISREG(in.st_mode) && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
  check(!is_same, ErrorKind::kUsage,
        "standard output is the file that standard input reads; write to another one");
}

}  // namespace keel::cli
