// Points drawn from a mixture, where a text ends, and pictures.
#include <doctest/doctest.h>

#include <cmath>

#include "models/handwriting/drawing.h"
#include "models/handwriting/writer.h"
#include "tests/support/checks.h"
#include "tests/support/markup_check.h"

namespace keel::models {
namespace {

TEST_CASE("hand writer: a point is drawn from the component in whose share the number falls") {
  // Shares 1/4 and 3/4; means (1, 2) and (3, 4), deviations 2 and 1/2 of the second.
  const std::vector<float> y{
      0, 0, float(std::log(3.0)), 1, 3, 2, 4, 0, float(std::log(2.0)), 0, float(std::log(0.5)),
      0, 0};
  const PenPoint first = draw_point(y, {0.2, 0.6, 0, 0}, 0);
  CHECK(first.dx == 1);
  CHECK(first.dy == 2);
  CHECK(!first.lifts);
  const PenPoint second = draw_point(y, {0.3, 0.4, 1, -2}, 0);
  CHECK(second.dx == doctest::Approx(5));
  CHECK(second.dy == doctest::Approx(3));
  CHECK(second.lifts);
  CHECK(draw_point(y, {0.9999999, 0, 0, 0}, 0).dx == 3);
}

TEST_CASE("hand writer: a bias narrows components and raises the likeliest") {
  const std::vector<float> y{
      0, 0, float(std::log(3.0)), 1, 3, 2, 4, 0, float(std::log(2.0)), 0, float(std::log(0.5)),
      0, 0};
  // With a bias of 1 the shares are 1/10 and 9/10.
  CHECK(draw_point(y, {0.09, 0, 0, 0}, 1).dx == 1);
  CHECK(draw_point(y, {0.11, 0, 0, 0}, 1).dx == 3);
  CHECK(draw_point(y, {0.9, 0, 1, 0}, 1).dx == doctest::Approx(3 + 2 / std::exp(1.0)));
}

TEST_CASE("hand writer: what is drawn is correlated as rho says") {
  const std::vector<float> y{0, 0, 0, 0, 0, 0, 8};
  const PenPoint p = draw_point(y, {0.5, 0, 1.5, -1}, 0);
  CHECK(p.dx == 1.5f);
  CHECK(p.dy == doctest::Approx(1.5).epsilon(1e-2));
}

TEST_CASE("hand writer: a text ends where the window is stronger after it than on it") {
  const std::vector<float> components{0, 0, 0};
  CHECK(!is_past_end(components, std::vector<float>{3.4f}, 3));
  CHECK(is_past_end(components, std::vector<float>{3.6f}, 3));
  CHECK(is_past_end(components, std::vector<float>{9}, 3));
  CHECK(!is_past_end(components, std::vector<float>{0}, 3));
  // Two bumps, the stronger one still on the text.
  const std::vector<float> two{2, 0, 0, 0, 0, 0};
  CHECK(!is_past_end(two, std::vector<float>{2, 4}, 3));
}

// The outputs of a network that lifts the pen with every point and moves right by one, while the
// window moves by `speed` a point.
class Fake {
 public:
  Fake(const HandwritingSizes& sizes, float speed) : sizes_(sizes), speed_(speed) {}
  std::map<std::string, Tensor> operator()(const task::Batch& batch) const {
    Tensor state = batch.values[StrokeValue::kState].clone();
    state.as<float>()[std::size_t(2 * sizes_.layers * sizes_.width)] += speed_;
    std::map<std::string, Tensor> predictions;
    predictions["density"] = Tensor::of<float>({1, 7}, {-50, 0, 1, 0, -7, -7, 0});
    predictions["components"] = Tensor::of<float>({1, 3}, {0, 0, 0});
    predictions["state"] = std::move(state);
    return predictions;
  }

 private:
  HandwritingSizes sizes_;
  float speed_;
};

HandWriter fake_writer(std::vector<std::string> texts, std::int64_t longest = 0, float speed = 1) {
  const HandwritingSizes sizes{1, 2, 1, 1, 3};
  HandWriter writer(std::move(texts), {Alphabet("abc"), {0, 0, 10, 10}}, sizes,
                    {.bias = 0, .longest = longest, .seed = 3});
  while (const task::Batch* batch = writer.next()) writer.take(Fake(sizes, speed)(*batch));
  return writer;
}

TEST_CASE("hand writer: each text is written to its end, an empty one not at all") {
  const HandWriter writer = fake_writer({"ab", "", "abcab"});
  CHECK(writer.size() == 3);
  // The window is past a text of n symbols when it has moved n + 1 times.
  CHECK(writer.points(0).size() == 1 + 3);
  CHECK(writer.points(1).empty());
  CHECK(writer.points(2).size() == 1 + 6);
  CHECK(writer.points(0)[1].dx == doctest::Approx(10).epsilon(0.01));
  CHECK(writer.points(0)[2].lifts);
  CHECK(writer.answers().size() == 3);
}

TEST_CASE("hand writer: the same text and place give the same points, another place others") {
  const HandWriter one = fake_writer({"ab", "ab"}), two = fake_writer({"ab", "ab"});
  CHECK(one.points(0)[1].dy == two.points(0)[1].dy);
  CHECK(one.points(1)[1].dy == two.points(1)[1].dy);
  CHECK(one.points(0)[1].dy != one.points(1)[1].dy);
  CHECK(one.points(0)[1].dy != one.points(0)[2].dy);
}

TEST_CASE("hand writer: a text that does not end is cut") {
  CHECK(fake_writer({"abcabc"}, 4).points(0).size() == 5);
  CHECK(fake_writer({"ab"}, 0, 0).points(0).size() == 1 + 2 * 120 + 100);
}

TEST_CASE("hand writer: as slow a hand as there is comes to the end of its text") {
  constexpr int kSlowest = 109;  // points a character, of all lines of IAM-OnDB
  const std::string text(30, 'a');
  const HandWriter writer = fake_writer({text}, 0, 1.0f / kSlowest);
  CHECK(std::abs(std::ssize(writer.points(0)) - 30.5 * kSlowest) < 10);
}

TEST_CASE("hand writer: unknown characters are refused with their place") {
  test::check_refused(
      [] {
        fake_writer({"ab", "az"});
      },
      "[handwriting] standard input: line 2: expected characters of 'abc', got 'z'", "",
      ErrorKind::kBadInput);
}

TEST_CASE("handwriting drawing: strokes are paths, y goes up, single points are dots") {
  const std::vector<PenPoint> points{{0, 0, false}, {10, 5, true}, {5, -5, true}};
  const std::string svg = handwriting_svg(points, "a < b");
  CHECK(test::well_formed(svg));
  CHECK(svg.find("<title>a &lt; b</title>") != std::string::npos);
  const std::size_t path = svg.find("d=\"M");
  REQUIRE(path != std::string::npos);
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  REQUIRE(std::sscanf(svg.c_str() + path, "d=\"M%lf %lfL%lf %lfM%lf %lfh0\"", &x0, &y0, &x1, &y1,
                      &x2, &y2) == 6);
  CHECK(x0 < x1);
  CHECK(x1 < x2);
  CHECK(y1 < y0);
  CHECK(y2 == doctest::Approx(y0));
  CHECK(test::well_formed(handwriting_svg({}, "")));
}

}  // namespace
}  // namespace keel::models
