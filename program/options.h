// The command line of `keel`.
#pragma once

namespace keel::cli {

// Parses the command line and runs the subcommand that it names. Returns its exit code, or 0 after
// --help and --version. Throws Error{kUsage} for a wrong command line, and every error of the
// subcommand.
int parse_and_run(int argc, char** argv);

}  // namespace keel::cli
