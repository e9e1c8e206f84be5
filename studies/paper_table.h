// Tables of the papers as data: quantities, norms and published results. The files are
// studies/tables/*.toml.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "studies/study.h"

namespace keel::study {

struct PaperColumn {
  std::string name, title;  // "rt", "RT, accuracy %"
  std::string task;         // a model of the zoo, or one that does not exist yet
  std::string run;          // columns with the same run are numbers of the same training
  std::map<std::string, std::string> recipes;                // "paper": "paper_sst5"; or none
  std::map<std::string, std::vector<std::string>> settings;  // more, by recipe: "train.batch=4"
  bool is_builtin = false;         // trains on the task's built-in data whatever is asked for
  std::vector<std::string> seeds;  // settings that take the seed in addition to train.seed
  std::string study =
      {};  // measures `metric` of a finished training; empty: the training itself reports it
  // The value in the paper's unit is offset + scale * metric.
  std::string split, metric, weights;  // "test", "error", "best"
  double offset = 0, scale = 1;
  int digits = 2;               // shown after the point
  bool less_is_better = false;  // of that value
  std::int64_t tested = 0;      // rows of the test set, of a share of right answers in %; 0: none
};

struct PaperRow {
  std::string name;  // of its own where rows share a norm: "layernorm-gain0.1"; else the norm's
  std::string norm;  // "adanorm"
  std::map<std::string, std::string> values;  // by column, as printed; none: not reported
  // Options of the norm. The key names a column, "rt", or a column and a recipe, "ptb/short", which
  // goes first.
  std::map<std::string, std::string> options;
  // More settings of the training, by the same keys: "model.final_norm=powernorm{warmup=1000}".
  std::map<std::string, std::vector<std::string>> settings = {};
};

// A row that says by how much one norm improves on another: a value of `of` less the one of `over`,
// with the sign of an improvement.
struct PaperDifference {
  std::string of, over;
};

// A row of another system, whose network is not here: it is shown and not trained.
struct PaperSystem {
  std::string name;
  std::map<std::string, std::string> values;  // as a norm's
};

struct PaperTable {
  std::string name, source, about;  // "xu-table4", "Xu et al. 2019, table 4", ...
  bool is_figure = false;           // the paper draws its columns along the training
  bool along_updates = false;       // and along updates, where others are drawn along epochs
  bool log_x = false;               // on a logarithmic axis
  std::vector<PaperColumn> columns;
  std::vector<PaperRow> rows;  // none: the table only names tasks that do not exist yet
  std::vector<PaperDifference> differences = {};  // shown after the rows
  std::vector<PaperSystem> systems = {};          // shown last
};

// "adanorm{C=0.3}": the norm of a row in a column, for this of the column's recipes.
std::string norm_spec(const PaperRow& row, const PaperColumn& column,
                      const std::string& recipe = "paper");
// The column's settings, but for keys that the row has its own settings for, and the row's.
std::vector<std::string> settings_for(const PaperRow& row, const PaperColumn& column,
                                      const std::string& recipe = "paper");

// The tables of one file. Throws Error{kInternal} naming `where` for invalid contents.
std::vector<PaperTable> read_paper_tables(std::string_view toml, const std::string& where);

std::span<const PaperTable> paper_tables();

// Throws Error{kUsage} for an unknown name, with the nearest known one.
const PaperTable& find_paper_table(const std::string& name);

// A table or figure that is not of trainings to the end: a study computes it.
struct StudiedFigure {
  std::string name, study;  // "shen-figure7", "figure7"
  bool takes_data = false;  // the tasks that the study takes where none is named read a folder
};
std::span<const StudiedFigure> studied_figures();

// What a figure is asked for: seeds that follow each other, and the recipe and the folder of data,
// each of which may be empty.
struct FigureRequest {
  std::vector<std::int64_t> seeds;
  std::string recipe = {}, data = {};
};
// The options of its study. An exact study takes no seeds, and one without data no recipe.
Options options_of(const StudiedFigure& figure, const FigureRequest& request, Backend& backend);

}  // namespace keel::study
