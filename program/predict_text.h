// keel predict --prompt: a language model continues a text.
#pragma once

#include "program/common.h"

namespace keel::cli {

// Writes the prompt and then token after token to standard output as they come; with --output the
// whole text into that file at the end, and with --json an object of both. Returns the exit code.
int predict_text(const PredictArgs& args, const Checkpoint& checkpoint);

}  // namespace keel::cli
