// Tables as CSV, Markdown and HTML, whatever the texts hold.
#include "frontend/report/table.h"

#include "frontend/report/page.h"
#include "tests/frontend/report/helpers.h"
#include "tests/support/markup_check.h"

namespace keel::report {
namespace {

// The rows of a CSV text, as a reader of RFC 4180 sees them.
Rows read_csv(const std::string& text) {
  Rows rows{{""}};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& field = rows.back().back();
    if (c == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      rows.back().emplace_back();
    } else if (c == '\n' && !quoted) {
      rows.push_back({""});
    } else {
      field += c;
    }
  }
  rows.pop_back();
  return rows;
}

TEST_CASE("report table: CSV reads back as it was, and is plain where it can be") {
  const Rows rows{{"a", "b"}, {"1,5", "say \"no\""}, {"two\nlines", ""}, {" x ", "1="}};
  const std::string csv = csv_text(rows);
  CHECK(csv == "a,b\n\"1,5\",\"say \"\"no\"\"\"\n\"two\nlines\",\n x ,1=\n");
  CHECK(read_csv(csv) == rows);
}

TEST_CASE("report table: no cell of CSV is a formula, and numbers stay numbers") {
  for (const char* formula :
       {"=1", "=cmd|' /C calc'!A0", "+1+1", "-1-1", "-x", "@SUM(A1)", "\t=1"}) {
    CAPTURE(std::string(formula));
    CHECK(csv_text({{formula}}) == fmt::format("'{}\n", formula));
  }
  CHECK(csv_text({{"\r=1"}}) == "\"'\r=1\"\n");
  for (const char* plain : {"-1", "+1", "-1.5e-3", "-inf", "-", "1-1", "a=b"}) {
    CHECK(csv_text({{plain}}) == fmt::format("{}\n", plain));
  }
}

TEST_CASE("report table: Markdown keeps its columns") {
  CHECK(markdown_text({{"norm", "value"}, {"a|b", "1"}}) ==
        "| norm | value |\n|---|---|\n| a\\|b | 1 |\n");
}

TEST_CASE("report table: numbers with all their digits") {
  CHECK(exact_text(0.1) == "0.1");
  CHECK(exact_text(1.0 / 3) == "0.3333333333333333");
  CHECK(exact_text(20) == "20");
  CHECK(exact_text(std::nullopt).empty());
}

TEST_CASE("report page: well-formed whatever the texts are, and nothing from elsewhere") {
  const std::string odd = "</td><script>a&b\"'\xff\x1b";
  Page page(odd);
  page.heading(odd);
  page.paragraph(odd);
  page.table({{odd, "n"}, {odd, "-1.5"}, {"x", "12 \u00B1 1"}});
  page.table({{"a heading without rows"}});
  page.figure("<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>", odd);
  page.code(odd + "\nsecond\n");
  const std::string html = page.take();
  CAPTURE(html);
  CHECK(html.starts_with("<!DOCTYPE html>\n"));
  CHECK(test::well_formed(html));
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("src=") == std::string::npos);
  CHECK(html.find("url(") == std::string::npos);
  CHECK(html.find("heading without rows") == std::string::npos);
  const std::string escaped = "&lt;/td&gt;&lt;script&gt;a&amp;b&quot;'\uFFFD\uFFFD";
  CHECK(test::texts_of(html, "title") == std::vector<std::string>{escaped});
  CHECK(test::texts_of(html, "td") ==
        std::vector<std::string>{escaped, "-1.5", "x", "12 \u00B1 1"});
  CHECK(test::texts_of(html, "pre") == std::vector<std::string>{escaped + "\nsecond\n"});
  CHECK(html.find("<td class=\"number\">-1.5<") != std::string::npos);
  CHECK(html.find("<td>x<") != std::string::npos);
}

TEST_CASE("report page: no column is cut off, whatever its heading, and no command") {
  Page page("p");
  page.table({{"group", "train.eval_every", "ours"}, {"none", "4u", "-"}});
  page.code("keel train");
  const std::string html = page.take();
  CHECK(test::well_formed(html));
  CHECK(html.find("<th>train.<wbr/>eval_<wbr/>every</th>") != std::string::npos);
  CHECK(html.find("<td class=\"number\">-<") != std::string::npos);  // a number that is missing
  CHECK(html.find("nowrap") == std::string::npos);
  CHECK(html.find("pre { white-space: pre-wrap;") != std::string::npos);
}

TEST_CASE("report page: a table of many columns becomes several that begin alike") {
  for (const std::size_t columns : {1, 2, 12, 13, 23, 24, 40}) {
    CAPTURE(columns);
    Rows rows{{}, {}};
    for (std::size_t i = 0; i < columns; ++i) {
      rows[0].push_back(fmt::format("h{}!", i));
      rows[1].push_back(fmt::format("c{}!", i));
    }
    Page page("many");
    page.table(rows);
    const std::string html = page.take();
    CHECK(test::well_formed(html));
    const std::size_t tables = test::texts_of(html, "table").size();
    CHECK(tables == (columns <= 12 ? 1 : (columns + 9) / 11));
    for (const std::string& name : {std::string("h"), std::string("c")}) {
      for (std::size_t i = 0; i < columns; ++i) {
        std::size_t found = 0;
        const std::string cell = fmt::format(">{}{}!<", name, i);
        for (std::size_t at = html.find(cell); at != html.npos; at = html.find(cell, at + 1)) {
          ++found;
        }
        CHECK(found == (i == 0 ? tables : 1));
      }
    }
  }
}

}  // namespace
}  // namespace keel::report
