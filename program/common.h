// Shared parts of the subcommands of `keel`: objects made from options, and output.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backends/backends.h"
#include "frontend/io/safetensors.h"
#include "frontend/train/evaluator.h"
#include "program/commands.h"
#include "src/runtime/backend.h"
#include "src/runtime/communicator.h"

namespace keel::cli {

// The recipe that was asked for, else the command's usual one or, of a model without it, the first.
std::string recipe_name(const RunArgs& args);
// The model's recipe (a name, or a path that ends in .toml), then --data, --norm and --set.
train::Config make_config(const RunArgs& args);
// The same before it is known whether all values fit together.
train::Config draft_config(const RunArgs& args);
// The same with its network, made for the data. Data that are not there in the recipe's form are
// looked for in the task's other forms, unless the user names a recipe or a form.
train::Job make_job(const RunArgs& args);
// The same; `args` gets the settings of the form that was found, and `says` whether a message does.
train::Job find_job(RunArgs& args, bool says);
std::unique_ptr<task::Task> make_task(const std::string& name);
// "section.key=value" as a pair. Throws Error{kUsage} without an '='.
std::pair<std::string, std::string> setting_of(const std::string& assignment);
// Whether such a setting of this key is among the arguments.
bool names_key(const RunArgs& args, const std::string& key);
// Applies such a setting to a config. Throws Error{kUsage} without an '='.
void apply_set(train::Config& config, const std::string& assignment);
// Throws Error{kUsage} if an option and a --set give the same key.
void expect_one(const std::string& option, const std::string& value, const std::string& key,
                const std::vector<std::string>& sets);
// The backend that was asked for, or the default one, and its options.
std::string backend_name(const RunArgs& args);
BackendOptions backend_options(const RunArgs& args);
// The backend and all that the bits of its results depend on: "onednn: oneDNN 3.2.0, kernels avx2".
std::string backend_text(const Backend& backend);
std::unique_ptr<Backend> make_backend(const RunArgs& args);
// Replaces train.compute = auto by the type in which this machine computes the job's products
// faster, and says so. Of several processes all take what the first one finds.
void settle_compute(train::Job& job, Backend& backend, Communicator* ranks = nullptr);
// Throws Error{kUsage} where train.compute is auto and nothing measures.
void expect_settled(const train::Job& job);
// The program as it was called, for commands that a user can paste into a shell: "build/keel".
void set_program(const char* called);
std::string program_called();
// A checkpoint file, or the best checkpoint of a run's folder.
std::filesystem::path checkpoint_path(const std::string& given);
// A checkpoint, or the best one of a run's folder, to be used without further training.
struct Checkpoint {
  std::string path;
  io::TensorFile file;
  train::Job job;
};
// Throws Error{kIo} or Error{kBadInput}, also if it lies in the run folder of another model.
Checkpoint open_checkpoint(const std::string& given);
// The value of --seed. Throws Error{kUsage} when it is negative.
std::uint64_t seed_of(std::int64_t given);

// The facts on program and hardware in a run's config.toml.
task::OptionValues run_facts(const Backend& backend);

// Thrown when the reader of standard output has closed it, as `head` does. The program then ends
// without a message, with the exit code of a program that SIGPIPE ends.
struct ReaderGone {};
inline constexpr int kReaderGoneCode = 141;

// Writes to stdout. Throws ReaderGone, and Error{kIo} when it cannot be written for other reasons.
void print(const std::string& text);
// Bytes that are not UTF-8, which paths may have, appear as U+FFFD.
std::string json_text(const nlohmann::ordered_json& value);
void print_json(const nlohmann::ordered_json& value);

// The answers of a decoder, each followed by an end of line.
std::string text_of_answers(const task::Decoder& decoder);

// Rows of text in aligned columns; the first row is the heading. Cells appear as `shown` gives
// them.
std::string table_text(std::vector<std::vector<std::string>> rows);

// "  label  text" with the text's words in lines of at most 100 columns, one below the other.
std::string labelled(const std::string& label, const std::string& text);

}  // namespace keel::cli
