// Running graphs: backends by name, parameters and state, programs, optimizers, weights in files.
//
//   auto backend = make_backend(default_backend());
//   Variables variables(*backend, /*seed=*/1);
//   Program program(*backend, variables, g);
//   program.feed("x", x);
//   program.run();
//   double loss = program.scalar("loss");
//
// A backend that does not run a node refuses when the program is compiled, with
// Error{kBackendMissing}, the node's name and the reason.
#pragma once

#include "backends/backends.h"
#include "frontend/io/safetensors.h"
#include "frontend/optim/optimizer.h"
#include "include/keel/graph.h"
#include "src/runtime/program.h"
#include "src/runtime/run_graph.h"
#include "src/runtime/variables.h"
