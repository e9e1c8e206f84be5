#include "models/handwriting/writer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "frontend/text/text_file.h"
#include "models/handwriting/drawing.h"
#include "src/core/error.h"
#include "src/core/rng.h"
#include "src/ops/mixture_density.h"

namespace keel::models {
namespace {

using Part = MixturePart;

// The slowest hand of IAM-OnDB takes 109 points a character.
constexpr std::int64_t kPointsOfCharacter = 120, kPointsBesides = 100;

constexpr std::uint32_t kSampleStream = stream_of("handwriting.sample");

// One component of a mixture as a row of numbers says it.
struct Normal {
  double mean1, mean2, sigma1, sigma2, rho;

  Normal(std::span<const float> y, std::int64_t m, std::int64_t j, double bias) {
    const MixtureAttrs limits;
    const auto at = [&](int part) { return double(y[std::size_t(1 + part * m + j)]); };
    mean1 = at(Part::kMean1);
    mean2 = at(Part::kMean2);
    sigma1 = std::exp(std::max(at(Part::kSigma1), limits.least_log_sigma) - bias);
    sigma2 = std::exp(std::max(at(Part::kSigma2), limits.least_log_sigma) - bias);
    rho = std::tanh(std::clamp(at(Part::kRho), -limits.largest_rho, limits.largest_rho));
  }
};

// The component in whose share of the weights (1 + bias) pi^ the number `drawn` falls.
std::int64_t chosen(std::span<const float> pi, double drawn, double bias) {
  const double largest = *std::ranges::max_element(pi);
  std::vector<double> sums;
  double sum = 0;
  for (const float p : pi) sums.push_back(sum += std::exp((1 + bias) * (double(p) - largest)));
  const auto found = std::ranges::upper_bound(sums, drawn * sum);
  return std::min(found - sums.begin(), std::ssize(pi) - 1);
}

PointDraw numbers_of(std::uint64_t seed, std::uint64_t text, std::uint32_t t) {
  const Philox random(seed, kSampleStream, t);
  return {random.row_uniform(text, 0), random.row_uniform(text, 1), random.row_normal(text, 1),
          random.row_normal(text, 2)};
}

}  // namespace

PenPoint draw_point(std::span<const float> density, const PointDraw& draw, double bias) {
  const std::int64_t m = std::ssize(density) / Part::kCount;
  const std::int64_t j = chosen(density.subspan(1, std::size_t(m)), draw.component, bias);
  const Normal n(density, m, j, bias);
  const double along = n.rho * draw.normal1 + std::sqrt(1 - n.rho * n.rho) * draw.normal2;
  return {.dx = float(n.mean1 + n.sigma1 * draw.normal1),
          .dy = float(n.mean2 + n.sigma2 * along),
          .lifts = draw.pen < 1 / (1 + std::exp(double(density[0])))};
}

bool is_past_end(std::span<const float> components, std::span<const float> kappa,
                 std::int64_t length) {
  const std::size_t bumps = kappa.size();
  const auto phi = [&](std::int64_t u) {
    double sum = 0;
    for (std::size_t k = 0; k < bumps; ++k) {
      const double d = kappa[k] - double(u);
      sum += std::exp(components[k] - std::exp(double(components[bumps + k])) * d * d);
    }
    return sum;
  };
  const double behind = phi(length + 1);
  for (std::int64_t u = 1; u <= length; ++u) {
    if (phi(u) >= behind) return false;
  }
  return true;
}

HandWriter::HandWriter(std::vector<std::string> texts, const HandwritingFacts& facts,
                       const HandwritingSizes& sizes, const WriterOptions& options)
    : texts_(std::move(texts)),
      points_(texts_.size()),
      facts_(facts),
      sizes_(sizes),
      options_(options) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const std::string where = text::place("standard input", std::int64_t(i) + 1);
    numbers_.push_back(facts_.alphabet.numbers(texts_[i], "[handwriting] " + where));
  }
}

void HandWriter::begin_text() {
  const std::int64_t length = std::ssize(numbers_[text_]);
  batch_ = {.sizes = {1, 1, length}, .values = {}, .rows = {std::int64_t(text_)}, .items = 1};
  for (const task::Input& input : stroke_inputs(batch_.sizes, sizes_.state())) {
    batch_.values.emplace_back(input.type);
  }
  batch_.values[StrokeValue::kMask].as<std::uint8_t>()[0] = 1;
  std::ranges::copy(numbers_[text_], batch_.values[StrokeValue::kText].as<std::int32_t>().begin());
  points_[text_] = {PenPoint{}};
  has_begun_ = true;
}

const task::Batch* HandWriter::next() {
  while (text_ < texts_.size() && numbers_[text_].empty()) ++text_;
  if (text_ == texts_.size()) return nullptr;
  if (!has_begun_) begin_text();
  return &batch_;
}

void HandWriter::take(const std::map<std::string, Tensor>& predictions) {
  const auto numbers = [&](const char* name) { return predictions.at(name).as<float>(); };
  std::vector<PenPoint>& points = points_[text_];
  const std::span<const float> state = numbers("state");
  const PenPoint drawn =
      draw_point(numbers("density"),
                 numbers_of(options_.seed, text_, std::uint32_t(points.size() - 1)), options_.bias);
  const float normalized[] = {drawn.dx, drawn.dy, drawn.lifts ? 1.0f : 0.0f};
  std::ranges::copy(normalized, batch_.values[StrokeValue::kPoints].as<float>().begin());
  std::ranges::copy(state, batch_.values[StrokeValue::kState].as<float>().begin());
  points.push_back(
      {float(facts_.scale.dx(drawn.dx)), float(facts_.scale.dy(drawn.dy)), drawn.lifts});
  const std::span<const float> kappa =
      state.subspan(std::size_t(2 * sizes_.layers * sizes_.width), std::size_t(sizes_.bumps));
  const bool ends = is_past_end(numbers("components"), kappa, std::ssize(numbers_[text_]));
  const std::int64_t longest =
      options_.longest > 0 ? options_.longest
                           : kPointsOfCharacter * std::ssize(numbers_[text_]) + kPointsBesides;
  if (!ends && std::ssize(points) <= longest) return;
  ++text_;
  has_begun_ = false;
}

std::vector<std::string> HandWriter::answers() const {
  std::vector<std::string> answers;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    answers.push_back(handwriting_svg(points_[i], texts_[i]));
  }
  return answers;
}

}  // namespace keel::models
