// Files that a subcommand may write: never one that it reads, and none twice.
#pragma once

#include <string>
#include <vector>

namespace keel::cli {

struct Output {
  std::string option;  // that names it
  std::string path;    // of the file; empty: not asked for
};

// Call it before anything is written, as soon as the inputs are known. Throws Error{kUsage} if an
// output is one of the inputs or any other file that was read so far, a file of a run (its
// checkpoints, config, metrics or result), or the same file as another output, by whatever path or
// link; Error{kIo} if the folder of an output does not exist.
void expect_apart(const std::vector<Output>& outputs, const std::vector<std::string>& inputs = {});

// The same for standard output and standard input, if both are files.
void expect_streams_apart();

}  // namespace keel::cli
