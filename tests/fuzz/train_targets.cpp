// Readers of a run's files.
#include "frontend/report/run.h"
#include "frontend/train/job.h"
#include "frontend/train/run_state.h"
#include "models/registry.h"
#include "tests/fuzz/target.h"

namespace keel::fuzz {
namespace {

std::unique_ptr<task::Task> make(const std::string& name) {
  return models::find_model(name).make();
}

// A recipe of every task.
void read_recipe(std::string_view bytes) {
  for (const models::ModelEntry& entry : models::all_models()) {
    try {
      train::Config config(entry.make());
      config.apply_toml(bytes, "input");
      config.validate();
      train::Config again(entry.make());
      again.apply_toml(config.to_toml(), "again");
      expect(again.to_toml() == config.to_toml(), "a recipe changes when it is written");
    } catch (const Error& error) {
      expect(error.kind() == ErrorKind::kUsage, error.what());
    }
  }
}

void read_settings(std::string_view bytes) { train::read_settings(bytes, "input"); }

// A checkpoint, up to the network that belongs to it.
void read_checkpoint(std::string_view bytes) {
  const MemoryFile file(bytes);
  const io::TensorFile content = io::read_safetensors(file.path(), {.require_checksums = false});
  train::job_of_checkpoint(content, "input", make);
}

}  // namespace

std::span<const Target> train_targets() {
  static constexpr Target kTargets[] = {
      {"recipe", read_recipe}, {"settings", read_settings}, {"checkpoint", read_checkpoint}};
  return kTargets;
}

}  // namespace keel::fuzz
