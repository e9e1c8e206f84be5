// Where a subcommand may write: never onto what it reads, nor twice to one place.
#pragma once

#include <string>
#include <vector>

namespace keel::cli {

struct Output {
  std::string option;  // that names it
  std::string path;    // of the file; empty: not asked for
};

// Called before anything is written, as early as the inputs are known. Throws Error{kUsage} when an
// output is one of the inputs or any other file that was read so far, a file of a run (its
// checkpoints, config, metrics or result), or the same file as another output, by whatever path or
// link; Error{kIo} when there is no folder to write it into.
void expect_apart(const std::vector<Output>& outputs, const std::vector<std::string>& inputs = {});

// The same of standard output and standard input, where both are files.
void expect_streams_apart();

}  // namespace keel::cli
