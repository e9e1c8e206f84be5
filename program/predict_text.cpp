// keel predict --prompt: a language model continues a text.
#include "program/predict_text.h"

#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"
#include "frontend/io/message.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/run_state.h"
#include "frontend/train/signals.h"
#include "program/common.h"
#include "program/outputs.h"

namespace keel::cli {
namespace {

// Text that is printed as it comes begins with the prompt, which belongs to it.
task::Continuation asked_of(const PredictArgs& args) {
  task::Continuation asked{.prompt = *args.prompt, .tokens = args.tokens, .sample = args.sample};
  asked.sample.seed = seed_of(args.seed);
  if (args.output.empty() && !args.run.json) {
    asked.give = [](std::string_view text) { print(std::string(text)); };
  }
  return asked;
}

void finish(const PredictArgs& args, const std::string& text) {
  if (args.run.json) {
    print_json({{"prompt", *args.prompt}, {"text", text}});
  } else if (args.output.empty()) {
    print("\n");
  }
  if (!args.output.empty()) io::write_file_atomically(args.output, *args.prompt + text);
}

}  // namespace

int predict_text(const PredictArgs& args, const Checkpoint& checkpoint) {
  const train::Job& job = checkpoint.job;
  check(job.network().continues_text(), ErrorKind::kUsage,
        "predict --prompt: expected a language model, got {}", job.task().name());
  expect_apart({{"--output", args.output}});
  const task::Continuation asked = asked_of(args);
  const auto writer = job.network().continuation(asked);
  const auto backend = make_backend(args.run);
  Variables variables(*backend, 0);
  train::Evaluator evaluator(*backend, variables, job);
  evaluator.declare();
  train::load_finite(checkpoint.file, checkpoint.path, variables);
  if (asked.give) asked.give(asked.prompt);
  const train::SignalGuard signals;
  evaluator.decode(*writer, [] { return train::SignalGuard::received() != 0; });
  finish(args, writer->answers()[0]);
  const int signal = train::SignalGuard::received();
  if (signal == 0) return 0;
  io::say("interrupted: what had been written so far is kept");
  return 128 + signal;
}

}  // namespace keel::cli
