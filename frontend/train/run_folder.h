// The layout of a run's folder, and what makes a folder one.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "frontend/io/folder_lock.h"
#include "frontend/io/safetensors.h"

namespace keel::train {

struct RunFolder {
  std::filesystem::path path;
  std::filesystem::path config() const { return path / "config.toml"; }
  std::filesystem::path metrics() const { return path / "metrics.jsonl"; }
  // The folder of files for TensorBoard: the run's own folder, so that TensorBoard names the run
  // after it. A run that an earlier version began keeps its separate folder for them.
  std::filesystem::path events_folder() const;
  std::filesystem::path checkpoints() const { return path / "checkpoints"; }
  std::filesystem::path result() const { return path / "result.json"; }
  std::filesystem::path average() const { return path / "average.safetensors"; }
  // The folder that observers write to, and the file of the observer with this name.
  std::filesystem::path observations() const { return path / "observations"; }
  std::filesystem::path observation(const std::string& name) const {
    return observations() / (name + ".jsonl");
  }
  // The plot of a metric.
  std::filesystem::path plot(const std::string& metric) const { return path / (metric + ".svg"); }
};

// Keeps others from training in the folder while the lock lives (FolderLock); makes the folder.
std::unique_ptr<io::FolderLock> lock_run(const RunFolder& folder);

// Throws Error{kUsage}, which says how to go on, when any of a run's files is in the folder: even
// the remains of a run that was partly deleted are not overwritten.
void expect_no_run(const RunFolder& folder);

// Whether this is a file that a run keeps: a checkpoint, or its config, metrics, events, result,
// average, observations or lock.
bool is_file_of_run(const std::filesystem::path& file);

// Throws Error{kBadInput} when a checkpoint in the folder is of another model than the folder's
// config.toml. Without a config.toml any checkpoint is accepted.
void expect_model_of_run(const RunFolder& folder, const io::TensorFile& checkpoint,
                         const std::string& where);

// Throws Error{kBadInput} when the folder's config.toml gives the model an option that the run's
// checkpoint was not trained with: a user who edited the file should not believe that it has an
// effect.
void expect_options_of_run(const RunFolder& folder, const io::TensorFile& checkpoint,
                           const std::string& where);

}  // namespace keel::train
