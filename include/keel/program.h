// The `keel` program, with every subcommand, as a function; and one's own tasks in it:
//
//   int main(int argc, char** argv) {
//     return keel::program(argc, argv, {keel::task_of<MyTask>()});
//   }
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "include/keel/addition.h"
#include "include/keel/task.h"
#include "models/registry.h"

namespace keel {

// A recipe has a name and settings in TOML; its first line, "# ...", is shown by `keel list`.
using Recipe = models::Recipe;

// Names a task for every subcommand. `keel train` and `keel compare` take the recipe "laptop",
// `keel inspect` and `keel bench` the recipe "paper" where nobody asks for one; a task without that
// recipe gives its first.
template <std::derived_from<task::Task> T>
Addition task_of(std::vector<Recipe> recipes = {{"laptop", "# Every key has its default.\n"}}) {
  return {[recipes = std::move(recipes)] {
    models::add_model({std::string(T().name()),
                       []() -> std::unique_ptr<task::Task> { return std::make_unique<T>(); },
                       recipes});
  }};
}

// Parses the command line and runs the subcommand that it names. Never throws: what goes wrong is
// one line on stderr. Returns the exit code, as `keel --help` lists them.
int program(int argc, char** argv, const std::vector<Addition>& additions = {});

}  // namespace keel
