// Shared parts of the subcommands of the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "program/commands.h"

namespace keel::cli {

// A subcommand adds itself to the program. When it is chosen, it stores its exit code in `code`.
struct Command {
  CLI::App& app;
  int& code;
};

// More threads than any machine has processors; oneTBB crashes with very many.
inline const CLI::Range kThreads(0, 4096);

// Adds checks to all options: no empty values, which would count as not given, except for --text;
// and no number that overflows.
void add_common_checks(CLI::App& app);

// --pdf and --png, for all commands that write charts. They need the option `needed` or exclude
// `excluded`, unless these are null.
void add_formats(CLI::App& app, io::ChartFormats& formats, CLI::Option* needed = nullptr,
                 CLI::Option* excluded = nullptr);

// --device and --tf32.
void add_gpu(CLI::App& app, RunArgs& args);
// These, --backend and --json.
void add_backend(CLI::App& app, RunArgs& args);
// These and --threads.
void add_backend_options(CLI::App& app, RunArgs& args);
// These and what chooses a model, its recipe and its data. Returns the model's option.
CLI::Option* add_run_options(CLI::App& app, RunArgs& args, const std::string& default_recipe);
void add_choice(CLI::App& app, const std::string& name, std::string& value,
                const std::vector<std::string>& choices, const std::string& about);

// `keel bench` with all its benchmarks.
void add_bench(Command command);
void add_compare(Command command);
void add_identify(Command command);
void add_report(Command command);
void add_reproduce(Command command);
void add_study(Command command);
void add_text(Command command);

}  // namespace keel::cli
