// How much of their first values running statistics still hold, and that a run says so.
#include "frontend/train/first_values.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/process.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"

namespace keel::train {
namespace {

using test::Settings;
using test::small_job;

TEST_CASE("first values: the share that is left, by norm and updates") {
  const struct {
    const char* norm;
    double keep;
  } rows[] = {{"batchnorm", 0.99},  // of mnist_mlp
              {"batchnorm{keep=0.5}", 0.5},
              {"pn_v", 0.9},
              {"pn_v{keep=0.7}", 0.7},
              {"mabn", 0.98},
              {"powernorm", 0.9},
              {"unifiednorm", 0.9},
              {"batchrenorm{rate=0.2}", 0.8}};
  for (const auto& row : rows) {
    CAPTURE(std::string(row.norm));
    const Job job = small_job({std::string("model.norm=") + row.norm});
    const FirstValue left = first_value_left(job, 3);
    CHECK(left.keep == doctest::Approx(row.keep));
    CHECK(left.share == doctest::Approx(std::pow(row.keep, 3)));
    CHECK(left.norm.starts_with("fc1/norm/"));
  }
  for (const char* norm : {"none", "layernorm", "powernorm{warmup=5}"}) {
    const Job job = small_job({std::string("model.norm=") + norm});
    CHECK(first_value_left(job, 3).norm.empty());
    CHECK(first_value_warning(job, 3).empty());
  }
}

TEST_CASE(
    "first values: local micro-batches move the statistics each, shared ones once an update") {
  const auto share = [](const Settings& settings) {
    return first_value_left(small_job(settings), 4).share;
  };
  CHECK(share({"model.norm=batchnorm{keep=0.9}", "train.batch=16", "train.accumulate=2",
               "train.statistics=local"}) == doctest::Approx(std::pow(0.9, 8)));
  CHECK(share({"model.norm=batchnorm{keep=0.9}", "train.batch=16", "train.accumulate=2"}) ==
        doctest::Approx(std::pow(0.9, 4)));
  CHECK(share({"model.norm=batchnorm{keep=0.9}", "train.batch=16", "train.accumulate=2",
               "train.shards=2", "train.statistics=local"}) == doctest::Approx(std::pow(0.9, 4)));
}

TEST_CASE("first values: a run warns above a twentieth and not below") {
  // 0.9^28 = 0.0523, 0.9^29 = 0.0471
  const Job job = small_job({"model.norm=batchnorm{keep=0.9}"});
  CHECK(first_value_warning(job, 29).empty());
  const std::string warning = first_value_warning(job, 28);
  CHECK(warning.starts_with("fc1/norm/"));
  CHECK(
      warning.find("after 28 updates its running statistics still hold 5 % of their first "
                   "values (each batch leaves 0.9 of them, so that 29 batches would leave 5 %)") !=
      std::string::npos);
  CHECK(first_value_warning(small_job({"model.norm=batchnorm{keep=1}"}), 9).empty());
  const test::TempDir temp;
  const auto err_of = [&](const char* name, const Settings& settings) {
    return test::run_keel(test::small_train(temp / name, settings)).err;
  };
  CHECK(err_of("few", {"model.norm=batchnorm", "train.max_steps=3"})
            .starts_with("warning: fc1/norm/"));
  CHECK(err_of("enough", {"model.norm=batchnorm{keep=0.9}", "train.epochs=4"}).empty());
  CHECK(err_of("layernorm", {"train.max_steps=3"}).empty());
}

}  // namespace
}  // namespace keel::train
