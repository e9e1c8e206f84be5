// What was meant by a command line that names what there is not.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace keel::cli {

// "keel: no subcommand is called 'trian'; nearest: 'train'", or of an option that the subcommand
// does not have its nearest, or the key of --set that it is. Empty where the words name only what
// there is, and something else is wrong.
std::string unknown_word(CLI::App& app, int argc, char** argv);

}  // namespace keel::cli
