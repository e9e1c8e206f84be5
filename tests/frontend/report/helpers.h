// Runs to report of: made up in memory, or as folders.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "frontend/report/run.h"
#include "tests/support/temp_dir.h"

namespace keel::report {

// A finished run of "mlp" with these settings, a validation error for every of the epochs of ten
// steps each, and the last of them as its test error.
inline Run made_run(const std::string& name, const Settings& settings,
                    const std::vector<double>& errors) {
  Run run;
  run.folder = run.name = name;
  run.model = "mlp";
  run.settings = settings;
  run.outcome = Outcome::kFinished;
  Curve valid{"valid", "error", {}, {}}, train{"train", "loss", {}, {}};
  for (const double error : errors) {
    run.step += 10;
    run.epochs.emplace_back(run.step, run.step / 10);
    valid.step.push_back(run.step);
    valid.value.push_back(error);
    train.step.push_back(run.step);
    train.value.push_back(error / 100);
  }
  run.curves = {train, valid};
  if (!errors.empty()) run.test["last"] = {{"loss", 0.5}, {"error", errors.back()}};
  run.seconds = 60;
  run.items_per_second = 1000;
  return run;
}

// The folder of a run, as far as it got.
struct RunFiles {
  std::string config =
      "[model]\nnorm = \"layernorm\"\n[train]\nlr = 1e-3\nseed = 1\n"
      "[run]\nmodel = \"mlp\"\nbackend = \"onednn\"\nprocessor = \"a cpu\"\n";
  std::string metrics =
      R"({"step":5,"epoch":0,"loss":2.0,"lr":0.001,"rows_per_second":90,"seconds":1}
{"step":10,"epoch":1,"split":"train","loss":1.5,"seconds":2}
{"step":10,"epoch":1,"split":"valid","loss":1.25,"error":12.5,"seconds":2.5}
)";
  std::string result;  // none: it has not ended

  void write(const std::filesystem::path& folder) const {
    std::filesystem::create_directories(folder);
    test::write_bytes(folder / "config.toml", config);
    test::write_bytes(folder / "metrics.jsonl", metrics);
    if (!result.empty()) test::write_bytes(folder / "result.json", result);
  }
};

}  // namespace keel::report
