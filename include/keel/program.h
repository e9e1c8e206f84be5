// The `keel` program, with every subcommand, as a function.
#pragma once

namespace keel {

// Parses the command line and runs the subcommand that it names. Never throws: what goes wrong is
// one line on stderr. Returns the exit code, as `keel --help` lists them.
int program(int argc, char** argv);

}  // namespace keel
