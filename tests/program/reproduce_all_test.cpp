// keel reproduce all: every table on one page, with reasons where nothing can be trained.
#include <set>

#include "backends/backends.h"
#include "studies/paper_table.h"
#include "tests/program/helpers.h"
#include "tests/support/temp_dir.h"

namespace keel::cli {
namespace {

TEST_CASE("reproduce: all tables stand on one page, also those that cannot be trained" *
          doctest::test_suite("slow")) {
  const test::TempDir temp;
  const std::string out = temp / "out";
  const ProcessResult result = run_keel({"reproduce", "all", "--as-is", "--recipe", "laptop",
                                         "--data", temp / "nothing", "--out", out, "--seeds", "1"});
  REQUIRE(result.code == 0);
  const std::string page = test::read_bytes(std::filesystem::path(out) / "all.md"),
                    html = test::read_bytes(std::filesystem::path(out) / "all.html");
  for (const study::PaperTable& table : study::paper_tables()) {
    CAPTURE(table.name);
    CHECK(holds(page, "# " + table.name + ": "));
    CHECK(holds(html, table.name + ": "));
  }
  for (const study::StudiedFigure& figure : study::studied_figures()) {
    CAPTURE(figure.name);
    CHECK(holds(page, "# " + figure.name + ": "));
    CHECK(holds(html, figure.name + ": "));
  }
  CHECK(holds(page, "Not run: "));
  CHECK(holds(page, "Not run yet. Command: keel study figure7 --seed 1 --seeds 1"));
  // The rows of differences are computed, as improvements: bits a character of 1.04 and 1.12.
  CHECK(holds(page, "detachnorm - none"));
  CHECK(holds(page, "-0.08"));
  // A value of a table that has no such recipe, and one of a column: the best of Cooijmans et al.
  CHECK(holds(page, ".858 / not run"));
  CHECK(holds(page, "43.9 / no such recipe"));
  // Nothing was trained, and no data were looked for.
  CHECK(holds(page, "76.85 / to do"));
  CHECK(holds(page, "| Fixup-Init | 34.5 / - | 29.3 / - |"));
}

TEST_CASE("reproduce: a figure that a study computes is kept, with its claims and its curves") {
  const test::TempDir temp;
  const std::string out = temp / "out";
  const std::vector<std::string> arguments{"reproduce", "shen-figure7", "--seeds",
                                           "1",         "--out",        out};
  CHECK(run_keel(arguments).code == 0);
  const std::filesystem::path folder = out;
  const std::string page = test::read_bytes(folder / "shen-figure7.md");
  CHECK(holds(page, "# shen-figure7: "));
  CHECK(holds(page,
              "Suggested, which three seeds could confirm: pn_v: share of features with |gain| <= "
              "psi: 1; > 0.95."));
  CHECK(holds(page, "Command: keel study figure7 --seed 1 --seeds 1\n"));
  CHECK(holds(page, "](shen-figure7-figure7-1.svg)"));
  CHECK_FALSE(holds(page, "## Cells"));
  CHECK(holds(page, "\n## pn_v: how many features have which "));
  CHECK(holds(test::read_bytes(folder / "shen-figure7-1.csv"), "site,"));
  const std::string curve = test::read_bytes(folder / "shen-figure7-figure7-1.svg");
  CHECK(holds(test::read_bytes(folder / "shen-figure7.html"), "<svg"));
  // A kept result is taken as it is, down to the curves, and again under --as-is.
  std::string kept = test::read_bytes(folder / "study.json");
  const std::string standing = "Suggested, which three seeds could confirm";
  kept.replace(kept.find(standing), standing.size(), "Was kept");
  test::write_bytes(folder / "study.json", kept);
  for (const bool as_is : {false, true}) {
    std::vector<std::string> again = arguments;
    if (as_is) again.emplace_back("--as-is");
    CHECK(run_keel(again).code == 0);
    CHECK(holds(test::read_bytes(folder / "shen-figure7.md"), "Was kept: pn_v"));
    CHECK(test::read_bytes(folder / "shen-figure7-figure7-1.svg") == curve);
  }
  // Its sentences are built in, whatever folder of data is named.
  std::vector<std::string> beside_data = arguments;
  beside_data.insert(beside_data.end(), {"--data", temp / "nothing"});
  CHECK(run_keel(beside_data).code == 0);
  CHECK(holds(test::read_bytes(folder / "shen-figure7.md"), "- Data: built in; the paper's are "));
  CHECK(holds(test::read_bytes(folder / "shen-figure7.md"), "Was kept: pn_v"));
  // Other seeds give another result; and a damaged file is no result.
  std::vector<std::string> other = arguments;
  other[3] = "5,6";
  CHECK(run_keel(other).code == 0);
  CHECK(holds(test::read_bytes(folder / "shen-figure7.md"), "figure7 --seed 5 --seeds 2\n"));
  other.emplace_back("--as-is");
  for (
      const std::string damaged :
      {"{", "7", R"({"command": "keel", "seconds": 1, "remarks": []})",
       R"({"command": "keel", "seconds": "long", "remarks": [], "charts": []})",
       R"({"command": "keel", "seconds": 1, "remarks": [], "charts": [{"name": "curve"}]})",
       R"({"command": "keel", "seconds": 1, "remarks": [], "charts": [], "tables": [{"rows": 1}]})",
       R"({"command": "keel", "seconds": 1, "remarks": [], "charts": []})",
       R"({"command": "k", "data": 7, "seconds": 1, "remarks": [], "charts": [], "tables": []})"}) {
    CAPTURE(damaged);
    test::write_bytes(folder / "study.json", damaged);
    CHECK(run_keel(other).code == 0);
    CHECK(holds(test::read_bytes(folder / "shen-figure7.md"), "Not run yet. Command: keel study"));
  }
  check_refusal(run_keel({"reproduce", "shen-figure7", "--plan"}), 2,
                "reproduce shen-figure7: expected no");
}

TEST_CASE("reproduce: a paper's difference is an improvement, be it that less is better") {
  const test::TempDir temp;
  const study::PaperTable& table = study::find_paper_table("xu-table2");
  const Json json = json_of(
      run_keel({"reproduce", table.name, "--as-is", "--json", "--out", temp.path().string()}));
  REQUIRE(!table.differences.empty());
  std::set<bool> seen;
  for (const study::PaperColumn& column : table.columns) {
    const auto paper = [&](const std::string& norm) -> std::string {
      const auto cell = std::ranges::find_if(json.at("cells"), [&](const Json& c) {
        return c.at("norm") == norm && c.at("column") == column.name;
      });
      REQUIRE(cell != json.at("cells").end());
      return cell->at("paper");
    };
    for (const auto& [of, over] : table.differences) {
      if (paper(of) == "diverged" || paper(over) == "diverged") continue;
      if (paper(of).empty()) continue;  // a column that the paper does not have
      const double more = std::stod(paper(of)) - std::stod(paper(over));
      CHECK(paper(of + " - " + over) ==
            fmt::format("{:.{}f}", column.less_is_better ? -more : more, column.digits));
      seen.insert(column.less_is_better);
    }
  }
  CHECK(seen.size() == 2);
}

TEST_CASE("reproduce: the command on a study's page gives what the page has") {
  const test::TempDir temp;
  REQUIRE(run_keel({"reproduce", "shen-figure7", "--seeds", "5,6", "--out", temp.path().string()})
              .code == 0);
  const std::string page = test::read_bytes(temp / "shen-figure7.md");
  CHECK(holds(page, "keel study figure7 --seed 5 --seeds 2\n"));
  const Json study =
      json_of(run_keel({"study", "figure7", "--seed", "5", "--seeds", "2", "--json"}));
  REQUIRE(!study.at("checks").empty());
  for (const Json& check : study.at("checks")) {
    CHECK(holds(page, fmt::format("{}: {:.4g}; {}.", check.at("claim").get<std::string>(),
                                  check.at("measured").get<double>(),
                                  check.at("bound").get<std::string>())));
  }
}

TEST_CASE("reproduce: a kept study stands under the data that it had") {
  const test::TempDir temp;
  const std::string out = temp / "out";
  const std::vector<std::string> as_is{"reproduce", "santurkar-shift", "--as-is", "--data",
                                       "HERE",      "--out",           out};
  const auto page = [&](const std::string& data) {
    test::write_bytes(std::filesystem::path(out) / "study.json",
                      R"({"command": "keel study other", )" + data +
                          R"("seconds": 1, "remarks": [], "tables": [], "charts": []})");
    CHECK(run_keel(as_is).code == 0);
    return test::read_bytes(std::filesystem::path(out) / "santurkar-shift.md");
  };
  std::filesystem::create_directory(out);
  CHECK(holds(page(R"("data": "THERE", )"), "- Data: THERE. The networks are small"));
  // An earlier version did not keep them, and only the command tells.
  const std::string earlier = page("");
  CHECK_FALSE(holds(earlier, "Data: "));
  CHECK(holds(earlier, "Command: keel study other\n"));
}

TEST_CASE("reproduce: studies have the data that they read without a task") {
  const test::TempDir temp;
  for (const study::StudiedFigure& figure : study::studied_figures()) {
    CAPTURE(figure.name);
    const std::string out = temp / figure.name;
    CHECK(run_keel({"reproduce", figure.name, "--as-is", "--data", "HERE", "--out", out}).code ==
          0);
    const std::string page = test::read_bytes(std::filesystem::path(out) / (figure.name + ".md"));
    CHECK(holds(page, " --data HERE\n") == figure.takes_data);
    CHECK(holds(page, "- Data: HERE.") == figure.takes_data);
  }
}

TEST_CASE("reproduce: a study gets its seeds, recipe and data; an exact one no seeds") {
  const auto backend = make_backend("reference");
  const study::FigureRequest request{{5, 6, 7}, "short", "HERE"};
  for (const study::StudiedFigure& figure : study::studied_figures()) {
    CAPTURE(figure.name);
    const study::Options defaults{*backend}, options = study::options_of(figure, request, *backend);
    const bool exact = study::find_study(figure.study).exact;
    CHECK(options.seed == (exact ? defaults.seed : 5));
    CHECK(options.seeds == (exact ? defaults.seeds : 3));
    CHECK(options.recipe == (figure.takes_data ? "short" : defaults.recipe));
    CHECK(options.data == (figure.takes_data ? "HERE" : defaults.data));
  }
}

TEST_CASE("reproduce: seeds of a study follow each other") {
  const test::TempDir temp;
  for (const char* name : {"shen-figure7", "santurkar-figure4", "all"}) {
    CAPTURE(name);
    const std::string out = temp / name;
    check_refusal(run_keel({"reproduce", name, "--as-is", "--seeds", "4,7", "--out", out}), 2,
                  "--seeds: expected seeds that follow each other, as studies take them, got 4,7");
    CHECK_FALSE(std::filesystem::exists(out));
  }
  // An exact result takes no seeds.
  const std::string out = temp / "table1";
  CHECK(run_keel({"reproduce", "ba-table1", "--as-is", "--seeds", "4,7", "--out", out}).code == 0);
}

TEST_CASE("reproduce: a study measures each checkpoint of a figure once") {
  const test::TempDir temp;
  const std::filesystem::path data = temp / "data", out = temp / "out";
  std::filesystem::copy(test::small_stories(), data, std::filesystem::copy_options::recursive);
  std::string good, bad;
  for (int i = 0; i < 30; ++i) {
    good += "a good film\n";
    bad += "a bad one\n";
  }
  test::write_bytes(data / "rt-polarity.pos", good);
  test::write_bytes(data / "rt-polarity.neg", bad);
  const std::vector<std::string> arguments{"reproduce", "ba-figure3",
                                           "--recipe",  "laptop",
                                           "--tasks",   "along_mr",
                                           "--norms",   "layernorm",
                                           "--seeds",   "1",
                                           "--data",    data.string(),
                                           "--out",     out.string(),
                                           "--set",     "model.width=8",
                                           "--set",     "model.word_width=4",
                                           "--set",     "train.max_steps=6",
                                           "--set",     "train.checkpoint_every=2"};
  const ProcessResult result = run_keel(arguments);
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  CHECK(holds(test::read_bytes(out / "ba-figure3.md"), "](ba-figure3-along_mr.svg)"));
  const std::filesystem::path run = out / "skip_thoughts_along-layernorm-laptop-seed1";
  int measured = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints")) {
    const std::string stem = entry.path().stem().string();
    if (!stem.starts_with("step-")) continue;
    const std::string file = fmt::format("transfer-{}.json", std::stoi(stem.substr(5)));
    const Json found = Json::parse(test::read_bytes(run / file));
    CHECK(found.at("MR, accuracy %").get<double>() <= 100);
    ++measured;
  }
  CHECK(measured >= 2);
  // A measured value is not measured again, and the curve shows it.
  const Json synthetic{{"MR, accuracy %", 12.5}};
  test::write_bytes(run / "transfer-4.json", synthetic.dump());
  const std::string before = test::read_bytes(out / "ba-figure3-along_mr.svg");
  CHECK(run_keel(arguments).code == 0);
  CHECK(test::read_bytes(run / "transfer-4.json") == synthetic.dump());
  CHECK(test::read_bytes(out / "ba-figure3-along_mr.svg") != before);
  const auto again = [&](std::vector<std::string> more) {
    more.insert(more.begin(), arguments.begin(), arguments.end());
    return more;
  };
  const ProcessResult plan = run_keel(again({"--plan", "--threads", "1"}));
  CHECK(holds(plan.out, "--run " + run.string() + " --data " + data.string() + " --threads 1\n"));
  // A training that no study has measured says so, and its sentences need not be there.
  std::filesystem::remove(run / "transfer.json");
  std::filesystem::remove_all(data);
  CHECK(run_keel(again({"--as-is"})).code == 0);
  CHECK(holds(test::read_bytes(out / "ba-figure3.md"), " seed 1: not measured yet |"));
}

TEST_CASE("reproduce: what is of one table is refused for all") {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--tasks", "rt"}, {"--norms", "none"}, {"--plan"}}) {
    std::vector<std::string> arguments{"reproduce", "all"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refusal(run_keel(arguments), 2, "reproduce all: expected no --tasks, --norms or --plan");
  }
}

}  // namespace
}  // namespace keel::cli
