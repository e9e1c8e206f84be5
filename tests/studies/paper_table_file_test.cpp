// Files of papers' tables: what they may say, and what they may not.
#include <doctest/doctest.h>

#include "studies/paper_table.h"

namespace keel::study {
namespace {

// A control is told once for all rows. A row of its own keeps what it says.
TEST_CASE("paper tables: a control is another row under its settings") {
  using Settings = std::vector<std::string>;
  const std::string file = R"(
source = "P"
[[table]]
name = "t"
place = "1"
about = "a"
rows = ["n", "n-plain", "m-plain"]
[[column]]
name = "c"
task = "x"
recipes = { paper = "p", short = "s" }
metric = "v"
[[control]]
name = "plain"
settings = { c = ["a=", "b=1"], "c/short" = ["a=2"] }
[[row]]
norm = "n"
values = { c = "1" }
options = { c = "k=1" }
settings = { c = ["e=3"] }
[[row]]
name = "m-plain"
norm = "m"
values = { c = "2" }
settings = { c = ["b=5"] }
)";
  const PaperTable table = read_paper_tables(file, "file")[0];
  REQUIRE(table.rows.size() == 3);
  const PaperColumn& c = table.columns[0];
  const PaperRow &base = table.rows[0], &made = table.rows[1], &own = table.rows[2];
  CHECK(norm_spec(made, c) == "n{k=1}");
  CHECK(made.values.empty());
  CHECK(settings_for(made, c) == Settings{"a=", "b=1", "e=3"});
  CHECK(settings_for(made, c, "short") == Settings{"a=2"});
  CHECK(settings_for(base, c) == Settings{"e=3"});
  CHECK(own.norm == "m");
  CHECK(own.values.at("c") == "2");
  CHECK(settings_for(own, c) == Settings{"a=", "b=5"});
}

TEST_CASE("paper tables: what a file may not say") {
  const auto refused = [](const std::string& toml, const std::string& part) {
    std::string what;
    try {
      read_paper_tables(toml, "file");
    } catch (const Error& error) {
      what = error.what();
      CHECK(error.kind() == ErrorKind::kInternal);
    }
    CAPTURE(what);
    CHECK(what.starts_with("file:"));
    CHECK(what.find(part) != std::string::npos);
  };
  const std::string head =
                        "source = \"P\"\n[[table]]\nname = \"t\"\nplace = \"1\"\nabout = \"a\"\n",
                    column = "[[column]]\nname = \"c\"\ntask = \"x\"\n";
  CHECK(read_paper_tables(head + column, "file")[0].source == "P, 1");
  const PaperTable drawn =
      read_paper_tables(head + "axis = \"updates\"\nlog_x = true\n" + column, "file")[0];
  CHECK(drawn.along_updates);
  CHECK(drawn.log_x);
  const std::string twins = "[[row]]\nnorm = \"n\"\n[[row]]\nname = \"m\"\nnorm = \"n\"\n";
  const PaperTable named =
      read_paper_tables(head + "rows = [\"m\", \"n\"]\n" + column + twins, "file")[0];
  CHECK(named.rows[0].norm == "n");
  CHECK(named.rows[0].name == "m");
  CHECK(named.rows[1].name == "n");
  refused(head + column + twins + "[[row]]\nname = \"m\"\nnorm = \"o\"\n",
          "row m: expected one of that name");
  refused(head + "axis = \"time\"\n" + column,
          "table t: axis: expected epochs or updates, got 'time'");
  refused("x", "file:1: ");
  refused(head, "column");
  refused(head + "rows = [\"r\"]\n" + column, "'r' is not in the file");
  refused(head + "columns = [\"d\"]\n" + column, "'d' is not in the file");
  refused(head + "systems = [{ name = \"s\", values = { d = \"1\" } }]\n" + column,
          "'d' is not in the file");
  const std::string control = "[[control]]\nname = \"p\"\nsettings = { c = [\"a=\"] }\n";
  refused(head + column + control, "control p: expected a table with a row NAME-p, got none");
  refused(head + "rows = [\"r-p\"]\n" + column + control, "'r' is not in the file");
  refused(head + "rows = [\"n-p\"]\n" + column + twins + control + "values = 1\n",
          "'values' is unknown");
  refused(head + "rows = [\"n-p\"]\n" + column + twins +
              "[[control]]\nname = \"p\"\nsettings = { d = [\"a=\"] }\n",
          "'d' is not in the file");
  refused(head + column + "taks = 1\n", "'taks' is unknown; nearest: 'task'");
  refused(head + column + "metric = \"m\"\n", "column c: expected recipes and a metric");
  refused(head + column + "digits = \"2\"\n", "type");
  refused(head + column + "data = \"here\"\n", "column c: data: expected builtin, got 'here'");
  refused(head + column + "[[row]]\nnorm = \"n\"\nvalues = { d = \"1\" }\n",
          "'d' is not in the file");
}

}  // namespace
}  // namespace keel::study
