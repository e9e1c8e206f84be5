// A step's first run is launched kernel by kernel, its second recorded, its third replayed: the
// bits are those of kernels that are always launched one by one.
#include <doctest/doctest.h>

#include "tests/backends/cuda/steps.h"

namespace keel::cuda {
namespace {

TEST_CASE("cuda replay: as it is, recorded or replayed, a step gives the same bits") {
  for (const char* optimizer : {"train.optimizer=adamw", "train.optimizer=sgd"}) {
    CAPTURE(std::string(optimizer));
    const test::Settings settings{optimizer, "train.weight_decay=0.1", "train.clip=global",
                                  "model.norm=batchnorm"};
    Training run(settings), single(settings);
    for (std::int64_t i = 0; i < 4; ++i) {
      CAPTURE(i);
      run.feed(i);
      run.step.run();
      single.feed(i);
      single.step.profile(1);  // runs kernel by kernel
      check_same_bits(run.results(), single.results());
    }
  }
}

}  // namespace
}  // namespace keel::cuda
