// Which runs are seeds of one setting, and what the settings are called.
#include "frontend/report/groups.h"

#include "tests/frontend/report/helpers.h"

namespace keel::report {
namespace {

Settings settings(const std::string& norm, const std::string& lr, int seed) {
  return {{"model.norm", norm},
          {"train.lr", lr},
          {"train.seed", std::to_string(seed)},
          {"data.seed", std::to_string(seed)}};
}

std::vector<std::string> labels(const Section& section) {
  std::vector<std::string> labels;
  for (const Group& group : section.groups) labels.push_back(group.label);
  return labels;
}

TEST_CASE("report groups: seeds of one setting are one group, in the order of the runs") {
  const std::vector<Run> runs{made_run("a", settings("batchnorm", "0.1", 2), {1}),
                              made_run("b", settings("layernorm", "0.1", 1), {1}),
                              made_run("c", settings("batchnorm", "0.1", 1), {1})};
  const auto sections = sections_of(runs);
  REQUIRE(sections.size() == 1);
  CHECK(sections[0].differing == std::vector<std::string>{"model.norm"});
  CHECK(labels(sections[0]) == std::vector<std::string>{"batchnorm", "layernorm"});
  REQUIRE(sections[0].groups[0].runs.size() == 2);
  CHECK(sections[0].groups[0].runs[0] == &runs[0]);
  CHECK(sections[0].groups[0].runs[1] == &runs[2]);
  CHECK(seed_of(runs[0]) == "2");
}

TEST_CASE("report groups: labels say what differs, the norm first, and nothing else") {
  std::vector<Run> runs{made_run("a", settings("batchnorm", "0.1", 1), {1}),
                        made_run("b", settings("layernorm", "0.2", 1), {1})};
  Section section = sections_of(runs)[0];
  CHECK(section.differing == std::vector<std::string>{"model.norm", "train.lr"});
  CHECK(labels(section) == std::vector<std::string>{"batchnorm, lr=0.1", "layernorm, lr=0.2"});
  CHECK(section.groups[1].settings == std::vector<std::string>{"layernorm", "0.2"});

  runs[1].settings = settings("batchnorm", "0.1", 1);
  runs[0].settings["model.size"] = "3";
  runs[0].settings["data.size"] = "4";
  runs[1].settings["data.size"] = "5";
  section = sections_of(runs)[0];
  CHECK(labels(section) ==
        std::vector<std::string>{"data.size=4, model.size=3", "data.size=5, model.size=-"});
}

TEST_CASE("report groups: one group alone is called by its model") {
  const std::vector<Run> runs{made_run("a", settings("none", "1", 1), {1}),
                              made_run("b", settings("none", "1", 2), {1})};
  const Section section = sections_of(runs)[0];
  CHECK(section.differing.empty());
  CHECK(labels(section) == std::vector<std::string>{"mlp"});
}

TEST_CASE("report groups: each model is a section of its own") {
  std::vector<Run> runs{made_run("a", settings("none", "1", 1), {1}),
                        made_run("b", settings("none", "1", 1), {1}),
                        made_run("c", settings("none", "2", 1), {1})};
  runs[1].model = "cnn";
  const auto sections = sections_of(runs);
  REQUIRE(sections.size() == 2);
  CHECK(sections[0].model == "mlp");
  CHECK(labels(sections[0]) == std::vector<std::string>{"lr=1", "lr=2"});
  CHECK(labels(sections[1]) == std::vector<std::string>{"cnn"});
}

TEST_CASE("report groups: the backend is a setting, the computer is not") {
  std::vector<Run> runs{made_run("a", settings("none", "1", 1), {1}),
                        made_run("b", settings("none", "1", 1), {1})};
  runs[0].facts["run.processor"] = "one";
  runs[1].facts["run.processor"] = "another";
  CHECK(sections_of(runs)[0].groups.size() == 1);
  runs[0].settings["run.backend"] = "onednn";
  runs[1].settings["run.backend"] = "cuda";
  CHECK(labels(sections_of(runs)[0]) == std::vector<std::string>{"backend=onednn", "backend=cuda"});
}

}  // namespace
}  // namespace keel::report
