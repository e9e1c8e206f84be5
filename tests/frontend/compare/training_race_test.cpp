// Training that is followed on several backends.
#include "frontend/compare/training_race.h"

#include "tests/frontend/compare/helpers.h"

namespace keel::compare {
namespace {

TEST_CASE("race: backends stay together for some steps, and a twin one ulp off beside them") {
  const TestBackends backends;
  const train::Job job = test::small_job({"train.batch=16"});
  ModelSubject subject(*backends.judge, job, {.unfused = true});
  const Race race =
      run_race(*backends.judge, backends.all, subject, {.steps = 12, .perturb = true});
  CHECK(race.judge_losses.size() == 12);
  CHECK(race.lanes.size() == backends.all.size() + 1);
  for (const RaceLane& lane : race.lanes) {
    CAPTURE(lane.name);
    CHECK(lane.losses.size() == 12);
    CHECK(lane.distances.back() > 0);
    CHECK(lane.distances.back() < 1e-4);
    CHECK(lane.parted == -1);
    CHECK(lane.growth > 0.5);
    CHECK(lane.growth < 5);
  }
  CHECK(race.lanes.back().name == race.lanes[0].name + " + 1 ulp");
  CHECK(race_picture(race, "title").starts_with("<"));
}

TEST_CASE("race: losses that differ by more than a limit have parted") {
  const TestBackends backends;
  const train::Job job = test::small_job({"train.batch=16"});
  ModelSubject subject(*backends.judge, job, {.unfused = true});
  const Race race = run_race(*backends.judge, {backends.all[0]}, subject,
                             {.steps = 5, .perturb = false, .parted = 0});
  CHECK(race.lanes[0].parted >= 0);
}

TEST_CASE("race: growth is the factor of an exponential") {
  CHECK(growth_of(std::vector<double>{1, 2, 4, 8}) == doctest::Approx(2));
  CHECK(growth_of(std::vector<double>{0, 3, 0, 27}) == doctest::Approx(3));
  CHECK(growth_of(std::vector<double>{0, 0}) == 1);
}

}  // namespace
}  // namespace keel::compare
