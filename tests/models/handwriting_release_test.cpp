// IAM-OnDB in the files of its release.
#include <doctest/doctest.h>

#include <filesystem>

#include "models/handwriting/files.h"
#include "models/handwriting/iam_release.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;
using test::write_bytes;

std::string strokes_xml(const std::string& strokes) {
  return "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<WhiteboardCaptureSession>\n"
         "<WhiteboardDescription><SensorLocation corner=\"top_left\"/></WhiteboardDescription>\n"
         "<StrokeSet>" +
         strokes + "</StrokeSet>\n</WhiteboardCaptureSession>\n";
}

// A line of `count` points in two strokes.
std::string line_xml(int count) {
  std::string strokes = "<Stroke colour=\"black\" start_time=\"1.5\">";
  for (int i = 0; i < count; ++i) {
    if (i == count / 2) strokes += "</Stroke><Stroke>";
    strokes += fmt::format("<Point x=\"{}\" y=\"{}\" time=\"{}\"/>", 500 + 3 * i, 700 + i % 5, i);
  }
  return strokes_xml(strokes + "</Stroke>");
}

// A form of two lines; `texts` of its text has.
void write_form(const fs::path& root, const std::string& form, int texts = 2) {
  const fs::path folder = fs::path(form.substr(0, 3)) / form.substr(0, 7);
  fs::create_directories(root / "ascii" / folder);
  fs::create_directories(root / "lineStrokes" / folder);
  std::string text = "OCR:\n\nread by a machine\n\nCSR:\n\n";
  for (int i = 0; i < texts; ++i) text += fmt::format("Hallo {} \r\n", i);
  write_bytes(root / "ascii" / folder / (form + ".txt"), text);
  for (int line = 1; line <= 2; ++line) {
    write_bytes(root / "lineStrokes" / folder / fmt::format("{}-{:02}.xml", form, line),
                line_xml(100 + line));
  }
}

void write_forms(const fs::path& root) {
  for (int i = 0; i < 20; ++i) write_form(root, fmt::format("a{:02}-{:03}u", i % 3, i));
}

TEST_CASE("iam release: strokes are points, y upwards, lifted after each stroke") {
  const std::vector<PenPoint> points = parse_iam_strokes(
      strokes_xml("<Stroke><Point x=\"5\" y=\"9\"/><Point x=\"7\" y=\"4\"/></Stroke><Stroke/>"
                  "<Stroke><Point x=\"-1\" y=\"6\"/></Stroke>"),
      "here");
  REQUIRE(points.size() == 3);
  CHECK(points[0].dx == 0);
  CHECK(points[0].dy == 0);
  CHECK(!points[0].lifts);
  CHECK(points[1].dx == 2);
  CHECK(points[1].dy == 5);
  CHECK(points[1].lifts);
  CHECK(points[2].dx == -8);
  CHECK(points[2].dy == -2);
  CHECK(points[2].lifts);
}

TEST_CASE("iam release: strokes that are none are refused") {
  const auto refused = [](const std::string& xml, const char* message) {
    CAPTURE(xml);
    test::check_refused([&] { parse_iam_strokes(xml, "f.xml"); }, "f.xml: ", message,
                        ErrorKind::kBadInput);
  };
  refused("", "expected XML");
  refused("<WhiteboardCaptureSession><StrokeSet>", "expected XML");
  refused("<a/>", "expected a StrokeSet of 2 points or more, got 0");
  refused(strokes_xml("<Stroke><Point x=\"1\" y=\"2\"/></Stroke>"), "2 points or more, got 1");
  refused(strokes_xml("<Stroke><Point x=\"1\" y=\"2\"/><Point x=\"1.5\" y=\"2\"/></Stroke>"),
          "point 2: expected x to be a whole number up to 16777216, got '1.5'");
  refused(strokes_xml("<Stroke><Point x=\"1\"/></Stroke>"), "point 1: expected y");
  for (const char* y : {"99999999", "-9223372036854775808", "9223372036854775808"}) {
    refused(strokes_xml(fmt::format("<Stroke><Point x=\"1\" y=\"{}\"/></Stroke>", y)),
            fmt::format("got '{}'", y).c_str());
  }
}

TEST_CASE("iam release: the lines of a form stand after CSR:") {
  CHECK(parse_iam_lines("OCR:\n\na\nCSR:\n\n b c \r\n\nd", "here") ==
        std::vector<std::string>{"b c", "d"});
  test::check_refused([] { parse_iam_lines("OCR:\na\n", "f.txt"); },
                      "f.txt: ", "expected a line 'CSR:'", ErrorKind::kBadInput);
}

TEST_CASE("iam release: lines go with their strokes, forms that do not match are left out") {
  const test::TempDir temp;
  write_forms(temp.path());
  write_form(temp.path(), "b00-000z", 3);
  write_form(temp.path(), "b01-000z", 1);
  const IamRelease release = read_iam_release(temp.path(), Alphabet::of_letters());
  CHECK(release.lines.size() == 40);
  CHECK(release.unmatched == 4);
  CHECK(release.lines[0].form == "a00-000u");
  CHECK(release.lines[0].line.text == Alphabet::of_letters().numbers("Hallo 0", ""));
  CHECK(release.lines[0].line.points.size() == 101);
  CHECK(release.lines[1].line.points.size() == 102);
  const HandwritingCorpus corpus = read_iam(temp.path());
  CHECK(corpus.valid.size() == 4);
  CHECK(corpus.test().size() == 4);
  CHECK(corpus.train.size() == 32);
  CHECK(corpus.origin.ends_with(", 4 of 44 lines left out"));
}

TEST_CASE("iam release: its list of validation forms is followed") {
  const test::TempDir temp;
  write_forms(temp.path());
  write_bytes(temp / "testset_v.txt", " a00-000u\na01-001\n\n");  // a form, and a text
  const HandwritingCorpus corpus = read_iam(temp.path());
  CHECK(corpus.valid.size() == 4);
  CHECK(corpus.test().size() == 4);
  CHECK(corpus.train.size() == 36);
  write_bytes(temp / "testset_v.txt", "z99-000u\n");
  test::check_refused([&] { read_iam(temp.path()); }, "[handwriting] ", "got too few",
                      ErrorKind::kBadInput);
}

TEST_CASE("iam release: files that are missing or damaged are named") {
  const test::TempDir temp;
  write_forms(temp.path());
  write_bytes(temp / "lineStrokes/a00/a00-000/a00-000u-01.xml", "<a>");
  test::check_refused([&] { read_iam(temp.path()); }, "[handwriting] ", "a00-000u-01.xml: byte",
                      ErrorKind::kBadInput);
  fs::remove_all(temp / "ascii");
  test::check_refused([&] { read_iam(temp.path()); }, "[handwriting] ", "ascii: No such file",
                      ErrorKind::kIo);
}

}  // namespace
}  // namespace keel::models
