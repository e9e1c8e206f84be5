// Colours and dashes: a norm's are its own, and the same in every report.
#include "frontend/report/styles.h"

#include <set>

#include "frontend/io/plot.h"
#include "frontend/nn/norm.h"
#include "tests/frontend/report/helpers.h"

namespace keel::report {
namespace {

std::vector<std::size_t> styles(const std::vector<Settings>& settings) {
  std::vector<Run> runs;
  for (const Settings& s : settings) runs.push_back(made_run("run", s, {1}));
  return styles_of(sections_of(runs)[0]);
}

TEST_CASE("report styles: every norm of keel has one of its own") {
  std::set<std::size_t> taken;
  for (const nn::NormFacts& norm : nn::norm_facts()) {
    CAPTURE(norm.name);
    CHECK(taken.insert(style_of_norm(norm.name)).second);
    CHECK(int(style_of_norm(norm.name)) < nn::norm_styles());
  }
  CHECK(style_of_norm("adanorm{C=0.3}") == style_of_norm("adanorm"));
  const std::size_t other = style_of_norm("a norm of tomorrow");
  CHECK(int(other) >= nn::norm_styles());
  CHECK(other < io::kPlotStyles);
  CHECK(other == style_of_norm("a norm of tomorrow{x=1}"));
}

TEST_CASE("report styles: a norm keeps its own, whichever norm stands beside it") {
  const Settings none{{"model.norm", "none"}}, layer{{"model.norm", "layernorm"}},
      batch{{"model.norm", "batchnorm"}};
  const std::size_t expected = style_of_norm("layernorm");
  CHECK(styles({layer})[0] == expected);
  CHECK(styles({none, layer})[1] == expected);
  CHECK(styles({batch, none, layer})[2] == expected);
  CHECK(styles({layer, batch})[0] == expected);
}

TEST_CASE("report styles: series that are named after norms have the norms' styles") {
  const auto plot_of = [](const std::vector<std::string>& names) {
    io::Plot plot{.title = "", .x_label = "", .y_label = "", .series = {}};
    for (const std::string& name : names) plot.series.push_back({name, {}, {}});
    set_norm_styles(plot);
    return plot;
  };
  const io::Plot norms = plot_of({"batchnorm, seed 1", "layernorm{eps=0.1}"});
  CHECK(norms.series[0].style == style_of_norm("batchnorm"));
  CHECK(norms.series[1].style == style_of_norm("layernorm"));
  CHECK_FALSE(plot_of({"layernorm", "fc1"}).series[0].style.has_value());
  CHECK_FALSE(plot_of({"layernorm, seed 1", "layernorm, seed 2"}).series[0].style.has_value());
}

TEST_CASE("report styles: of one norm twice the second has its colour, and other dashes") {
  std::vector<Settings> settings;
  for (const char* lr : {"1", "2", "3", "4", "5"}) {
    settings.push_back({{"model.norm", "layernorm"}, {"train.lr", lr}});
  }
  settings.push_back({{"model.norm", "batchnorm"}, {"train.lr", "1"}});
  const std::vector<std::size_t> found = styles(settings);
  CHECK(found[0] == style_of_norm("layernorm"));
  for (std::size_t i = 1; i < 4; ++i) {
    CHECK(found[i] % io::kPlotColours == found[0] % io::kPlotColours);
  }
  CHECK(found[5] == style_of_norm("batchnorm"));
  CHECK(std::set<std::size_t>(found.begin(), found.end()).size() == 6);
}

TEST_CASE("report styles: groups of one norm alone have colours of their own") {
  std::vector<Settings> settings;
  for (int i = 0; i < 7; ++i) {
    settings.push_back({{"model.norm", "adanorm"}, {"train.lr", std::to_string(i)}});
  }
  std::set<std::size_t> colours;
  for (const std::size_t style : styles(settings)) colours.insert(style % io::kPlotColours);
  CHECK(colours.size() == 7);
}

TEST_CASE("report styles: more groups than styles") {
  std::vector<Settings> settings;
  for (int i = 0; i < 40; ++i) settings.push_back({{"train.lr", std::to_string(i)}});
  const std::vector<std::size_t> found = styles(settings);
  CHECK(std::set<std::size_t>(found.begin(), found.end()).size() == io::kPlotStyles);
}

}  // namespace
}  // namespace keel::report
