// The `keel` program. Data goes to stdout, messages to stderr, and every error is one line with a
// documented exit code.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <new>

#include "frontend/cli/common.h"

namespace keel::cli {
namespace {

constexpr const char* kFooter = R"(exit codes:
  0 ok   1 a check failed   2 usage   3 bad input   4 I/O   5 memory   6 diverged
  7 backend missing   130/143 interrupted, after a clean save

examples:
  keel train mnist_mlp --recipe laptop                    train on built-in digits
  keel train mnist_mlp --data DIR --norm batchnorm        real MNIST, another norm
  keel train mnist_mlp --set train.lr=3e-4 --out runs/a   another learning rate
  keel train --resume runs/a                              go on where it stopped
  keel eval runs/a --data DIR
  keel list norms
  keel inspect graph mnist_mlp
  keel bench step mnist_mlp)";

int report(const std::string& message, ErrorKind kind) {
  fmt::print(stderr, "keel: error: {}\n", message);
  return static_cast<int>(kind);
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("keel: train and compare networks with every normalization, on CPUs and GPUs");
  app.footer(kFooter);
  app.set_version_flag("--version", "keel " KEEL_VERSION);
  app.require_subcommand(1);
  int code = 0;
  const Command command{app, code};
  add_train(command);
  add_eval(command);
  add_list(command);
  add_inspect(command);
  add_bench(command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);
      check(bool(std::cout.flush()), ErrorKind::kIo, "cannot write to standard output");
      return 0;
    }
    return report(error.what(), ErrorKind::kUsage);
  }
  return code;
}

// A standard stream that is closed would be taken by the next file that is opened, and messages
// would end up in it. Reading from nothing takes its place, so that writing stays an error.
void fill_closed_streams() {
  while (true) {
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd > 2) close(fd);
    if (fd < 0 || fd > 2) return;
  }
}

int run(int argc, char** argv) {
  fill_closed_streams();
  // A reader that goes away is an error to report, not a signal to die of.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return parse_and_run(argc, argv);
  } catch (const Error& error) {
    return report(error.what(), error.kind());
  } catch (const std::bad_alloc&) {
    return report("out of memory", ErrorKind::kMemory);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(error.what(), ErrorKind::kIo);
  }
}

}  // namespace
}  // namespace keel::cli

int main(int argc, char** argv) { return keel::cli::run(argc, argv); }
