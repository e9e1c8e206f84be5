// Suggestions for a command line with an unknown name.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace keel::cli {

// "keel: no subcommand is called 'trian'; nearest: 'train'". For an option that the subcommand does
// not have, it is the nearest option, or the key of --set with that meaning. Empty if all names are
// known, and something else is wrong.
std::string unknown_word(CLI::App& app, int argc, char** argv);

}  // namespace keel::cli
