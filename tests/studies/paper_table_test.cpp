// The papers' tables: what the files hold, that they fit the zoo, and what a file may not say.
#include "studies/paper_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/nn/norm.h"
#include "frontend/train/config.h"
#include "frontend/train/job.h"
#include "models/registry.h"
#include "studies/study.h"
#include "studies/transfer_data.h"
#include "tests/support/temp_dir.h"

namespace keel::study {
namespace {

const PaperRow& row_called(const PaperTable& table, const std::string& name) {
  const auto found = std::ranges::find(table.rows, name, &PaperRow::name);
  REQUIRE(found != table.rows.end());
  return *found;
}

const PaperColumn& column_called(const PaperTable& table, const std::string& name) {
  const auto found = std::ranges::find(table.columns, name, &PaperColumn::name);
  REQUIRE(found != table.columns.end());
  return *found;
}

TEST_CASE("paper tables: names differ, and numbers are as printed") {
  std::set<std::string> names;
  for (const PaperTable& table : paper_tables()) CHECK(names.insert(table.name).second);
  const PaperTable& table = find_paper_table("xu-table4");
  CHECK(table.source == "Xu et al. 2019, table 4");
  REQUIRE(table.rows.size() == 4);
  CHECK(table.columns.size() == 9);
  const PaperRow& adanorm = row_called(table, "adanorm");
  CHECK(adanorm.values.at("mnist") == "99.35");
  CHECK(norm_spec(adanorm, column_called(table, "rt")) == "adanorm{C=0.3}");
  CHECK(norm_spec(adanorm, column_called(table, "mnist")) == "adanorm{C=2}");
  CHECK(norm_spec(row_called(table, "none"), column_called(table, "rt")) == "none");
  CHECK(column_called(table, "rt").tested == 1089);
  CHECK(column_called(table, "enwik8").tested == 0);
}

TEST_CASE("paper tables: a figure is one, and is tested along the training") {
  for (const PaperTable& table : paper_tables()) {
    CAPTURE(table.name);
    CHECK(table.is_figure == (table.source.find(", figure ") != std::string::npos));
    for (const PaperColumn& column : table.columns) {
      if (!table.is_figure || !column.study.empty() || column.split != "test") continue;
      for (const auto& [recipe, name] : column.recipes) {
        const std::vector<std::string>& settings = column.settings.at(recipe);
        CHECK(std::ranges::find(settings, "train.test_every=1e") != settings.end());
      }
    }
  }
}

TEST_CASE("paper tables: figures are drawn along updates where the paper draws them so") {
  const std::set<std::string> along{"ba-figure1", "ba-figure2", "ba-figure2-everywhere",
                                    "ba-figure3", "ba-figure5", "xu-figure1",
                                    "xu-figure2", "xu-figure3"};
  for (const PaperTable& table : paper_tables()) {
    CAPTURE(table.name);
    CHECK(table.along_updates == along.contains(table.name));
    CHECK(table.log_x == (table.name == "ba-figure5"));
  }
}

// The name of a row is a part of its runs' folders, and of lists with commas.
TEST_CASE("paper tables: rows have names of their own, which folders may have") {
  for (const PaperTable& table : paper_tables()) {
    std::set<std::string> names;
    for (const PaperRow& row : table.rows) {
      CAPTURE(row.name);
      CHECK(names.insert(row.name).second);
      CHECK(row.name.find_first_of("/{}, ") == std::string::npos);
    }
  }
}

// The recipes keep statistics of every time step; batchnorm would keep those of 100.
TEST_CASE("paper tables: batch norm in the attentive reader is that of its recipes") {
  const models::ModelEntry& entry = models::find_model("attentive_reader");
  int seen = 0;
  for (const PaperTable& table : paper_tables()) {
    for (const PaperColumn& column : table.columns) {
      if (column.task != entry.name || !column.recipes.at("paper").starts_with("bn_")) continue;
      std::map<std::string, std::string> settings;
      const std::string& recipe = column.recipes.at("paper");
      for (const auto& [key, value] :
           train::read_settings(models::find_recipe(entry, recipe), recipe)) {
        settings[key] = value;
      }
      for (const PaperRow& row : table.rows) {
        if (row.norm == "none" || row.norm == "layernorm") continue;
        CAPTURE(column.name);
        CHECK(norm_spec(row, column) == settings.at("model.norm"));
        ++seen;
      }
    }
  }
  CHECK(seen == 6);
}

TEST_CASE("paper tables: validation losses of translations stand without smoothing, too") {
  for (const char* name : {"xu-figure1", "xu-figure2", "xu-figure3"}) {
    const PaperTable& figure = find_paper_table(name);
    for (const PaperColumn& column : figure.columns) {
      if (column.task != "translation" || column.split != "valid") continue;
      if (column.metric != "loss") continue;
      CAPTURE(column.name);
      const PaperColumn& unsmoothed = column_called(figure, column.name + "_ppl");
      CHECK(unsmoothed.metric == "perplexity");
      CHECK(unsmoothed.split == "valid");
      CHECK(unsmoothed.run == column.run);
    }
  }
}

// Figures 1 to 3 of Xu et al. are of the trainings of their tables.
TEST_CASE("paper tables: the networks of Xu et al.'s figures are those of their tables") {
  const PaperTable& tables = find_paper_table("xu-tables");
  for (const char* name : {"xu-figure1", "xu-figure2", "xu-figure3"}) {
    const PaperTable& figure = find_paper_table(name);
    for (const PaperColumn& column : figure.columns) {
      CAPTURE(column.name);
      const PaperColumn& same = column_called(tables, column.run);
      CHECK(column.task == same.task);
      for (const auto& [recipe, of] : column.recipes) CHECK(same.recipes.at(recipe) == of);
      for (const PaperRow& row : figure.rows) {
        CHECK(norm_spec(row, column) == norm_spec(row_called(tables, row.name), same));
      }
    }
  }
}

// The page of all of Xu's tables has every row that one of them has.
TEST_CASE("paper tables: the page of four tables has the rows of each") {
  const PaperTable& page = find_paper_table("xu-tables");
  for (const char* name : {"xu-table1", "xu-table2", "xu-table3", "xu-table4"}) {
    for (const PaperRow& row : find_paper_table(name).rows) {
      CAPTURE(row.name);
      CHECK(row_called(page, row.name).values == row.values);
    }
  }
  CHECK(row_called(page, "powernorm").values.empty());
}

// The metric of a column whose task is there, in a configuration of one of its recipes.
void check_recipe(const PaperTable& table, const PaperColumn& column, const std::string& recipe) {
  const models::ModelEntry& entry = models::find_model(column.task);
  train::Config config(entry.make());
  config.apply_toml(models::find_recipe(entry, column.recipes.at(recipe)), recipe);
  for (const std::string& key : column.seeds) config.set(key, "1");
  for (const PaperRow& row : table.rows) {
    CAPTURE(row.name);
    config.set("model.norm", norm_spec(row, column, recipe));
    for (const std::string& setting : settings_for(row, column, recipe)) {
      const std::size_t equals = setting.find('=');
      config.set(setting.substr(0, equals), setting.substr(equals + 1));
    }
    CHECK_NOTHROW(config.validate());
  }
  if (!column.study.empty()) {
    CHECK(find_study(column.study).takes_runs);
    return;
  }
  std::vector<std::string> metrics{"loss"};
  for (const task::MetricInfo& info : config.task().metrics()) metrics.push_back(info.name);
  CHECK(std::ranges::find(metrics, column.metric) != metrics.end());
}

TEST_CASE("paper tables: rows that are computed are those of Xu et al., table 2") {
  const PaperTable& table = find_paper_table("xu-table2");
  REQUIRE(table.differences.size() == 2);
  CHECK(table.differences[0].of == "detachnorm");
  CHECK(table.differences[0].over == "none");
  CHECK(column_called(table, "enwik8").less_is_better);
}

TEST_CASE("paper tables: systems of other papers have the columns of their table") {
  const auto count = [](const char* name) { return find_paper_table(name).systems.size(); };
  CHECK(count("shen-table1") == 6);
  CHECK(count("shen-table2") == 7);
  CHECK(count("xu-table1") == 0);
  REQUIRE(count("ba-figure3") == 1);
  const PaperRow& original = row_called(find_paper_table("ba-table3-kiros"), "none");
  for (const auto& [column, value] : find_paper_table("ba-figure3").systems[0].values) {
    CAPTURE(column);
    CHECK(value == original.values.at("kiros_" + column.substr(std::string("along_").size())));
  }
  for (const PaperTable& table : paper_tables()) {
    for (const PaperSystem& system : table.systems) {
      CAPTURE(system.name);
      CHECK(!system.values.empty());
      for (const auto& [column, value] : system.values) {
        CHECK(std::stod(value) > 0);
        column_called(table, column);
      }
    }
  }
}

TEST_CASE("paper tables: recipes, settings, norms and metrics are there where the task is") {
  const auto models = models::all_models();
  for (const PaperTable& table : paper_tables()) {
    CAPTURE(table.name);
    for (const PaperColumn& column : table.columns) {
      CAPTURE(column.name);
      const bool there =
          std::ranges::find(models, column.task, &models::ModelEntry::name) != models.end();
      CHECK((!there || !column.recipes.empty()));
      if (!there) continue;
      CHECK(column.recipes.contains("paper"));
      for (const auto& [recipe, name] : column.recipes) check_recipe(table, column, recipe);
    }
  }
}

TEST_CASE("paper tables: figures take data where their studies read them without a task") {
  for (const StudiedFigure& figure : studied_figures()) {
    CAPTURE(figure.name);
    const bool reads_none =
        figure.study == "invariance" || figure.study == "landscape" || figure.study == "figure7";
    CHECK(figure.takes_data == !reads_none);
    CHECK((!figure.takes_data || find_study(figure.study).takes_task));
  }
}

// The numbers of a study are named as in a folder with all of its files.
TEST_CASE("paper tables: numbers that a study measures are called as it calls them") {
  const test::TempDir folder;
  for (const char* file : {"rt-polarity.neg", "rt-polarity.pos", "custrev.neg", "custrev.pos",
                           "subj.objective", "subj.subjective", "mpqa.neg", "mpqa.pos",
                           "SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"}) {
    test::write_bytes(folder / file, "words\n");
  }
  const std::vector<std::string> known = transfer_quantities(folder.path());
  const PaperTable& table = find_paper_table("ba-table3");
  CHECK(table.columns.size() == known.size());
  for (const PaperColumn& column : table.columns) {
    CAPTURE(column.name);
    CHECK(column.study == "transfer");
    CHECK(std::ranges::find(known, column.metric) != known.end());
  }
}

// Their program's recipe for WMT14, and what its batch norm has besides.
TEST_CASE("paper tables: Shen et al.'s translations are by recipes of theirs") {
  const PaperTable& table = find_paper_table("shen-table1");
  CHECK(column_called(table, "en_de").recipes.at("paper") == "shen_big");
  CHECK(column_called(table, "en_de").recipes.at("release") == "shen_big_release");
  const PaperRow& batchnorm = row_called(table, "batchnorm");
  CHECK(norm_spec(batchnorm, column_called(table, "de_en")) == "batchnorm{keep=0.95}");
  const PaperTable& fourth = find_paper_table("shen-table4");
  CHECK(norm_spec(row_called(fourth, "batchrenorm"), column_called(fourth, "de_en")) ==
        "batchrenorm{eps=1e-5}");
  // A warm-up of 4,000 updates would be longer than the half hour's training.
  const PaperColumn& ptb = column_called(fourth, "ptb");
  CHECK(norm_spec(row_called(fourth, "powernorm"), ptb) == "powernorm{warmup=4000}");
  CHECK(norm_spec(row_called(fourth, "powernorm"), ptb, "short") == "powernorm{warmup=400}");
  CHECK(norm_spec(row_called(fourth, "powernorm"), ptb, "release") == "powernorm{warmup=0}");
  CHECK(norm_spec(row_called(fourth, "batchrenorm"), ptb, "short") ==
        "batchrenorm{eps=1e-5,updates=3872}");
  CHECK(norm_spec(row_called(fourth, "powernorm-algorithm2"), ptb, "short") ==
        "powernorm{mode=paper,warmup=400}");
  CHECK(column_called(find_paper_table("xu-table1"), "de_en").recipes.at("paper") == "small");
}

// A row's own settings replace the column's.
TEST_CASE("paper tables: every norm of Shen et al. is scaled, and each has a control without") {
  using Settings = std::vector<std::string>;
  const PaperTable& table = find_paper_table("shen-table1");
  const PaperColumn& lex200 = column_called(table, "lex200");
  const auto holds = [&](const char* row, const std::string& setting) {
    const Settings all = settings_for(row_called(table, row), lex200, "laptop");
    return std::ranges::find(all, setting) != all.end();
  };
  CHECK(holds("layernorm", "model.scaling=layerscaling"));
  CHECK(holds("layernorm-unscaled", "model.scaling="));
  CHECK(!holds("layernorm-unscaled", "model.scaling=layerscaling"));
  CHECK(holds("layernorm-unscaled", "model.sites=encoder"));
  const PaperColumn& de_en = column_called(table, "de_en");
  const PaperRow& powernorm = row_called(table, "powernorm");
  CHECK(settings_for(powernorm, de_en) == Settings{});
  CHECK(settings_for(powernorm, de_en, "release") ==
        Settings{"model.final_norm=powernorm{heads=4,warmup=1000}"});
  for (const char* name : {"shen-table1", "shen-table2", "shen-table4"}) {
    const PaperTable& each = find_paper_table(name);
    for (const PaperRow& row : each.rows) {
      if (row.name != row.norm) continue;
      CAPTURE(row.name);
      const PaperRow& control = row_called(each, row.name + "-unscaled");
      CHECK(control.norm == row.norm);
      CHECK(control.values.empty());
    }
  }
  const PaperColumn& en_de = column_called(table, "en_de");
  const PaperRow& power_control = row_called(table, "powernorm-unscaled");
  CHECK(settings_for(power_control, en_de, "release") ==
        Settings{"model.scaling=", "model.scaled_norms=", "train.statistics=local"});
  CHECK(norm_spec(power_control, en_de) == "powernorm{heads=0,warmup=8000}");
}

TEST_CASE("paper tables: an unknown name is answered with the nearest") {
  CHECK_THROWS_WITH_AS(find_paper_table("xu-table5"),
                       "table 'xu-table5' is unknown; nearest: 'xu-table1'", Error);
}

}  // namespace
}  // namespace keel::study
