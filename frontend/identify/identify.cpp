#include "frontend/identify/identify.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/identify/trial.h"

namespace keel::identify {
namespace {

constexpr double kNear = 0.05;  // of the values: forms that are farther get no bounds
constexpr std::size_t kListed = 5;

double rms(const Tensor& t) {
  double sum = 0;
  for (double v : t.as<double>()) sum += v * v;
  return std::sqrt(sum / double(t.elements()));
}

// The root mean square of what is left, as a share of y; infinite for a NaN.
double misfit(const Tensor& y, const Tensor& got) {
  Tensor left(DType::kF64, got.shape());
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    left.as<double>()[std::size_t(i)] = y.at(i) - got.at(i);
  }
  const double size = rms(got), share = rms(left) / (size > 0 ? size : 1);
  return std::isnan(share) ? INFINITY : share;
}

std::string rounded(double value) { return fmt::format("{:.4g}", value); }

// y = a xhat + b xhat^2 by least squares: AdaNorm's C = a and k = -b / a. Returns false where there
// is no square, and so no AdaNorm.
bool fit_adanorm(Backend& reference, const Given& given, Form& form) {
  Form simple = form;
  simple.norm = "layernorm_simple";
  const Tensor xhat = Trial(reference, given, simple).y();
  double m2 = 0, m3 = 0, m4 = 0, y1 = 0, y2 = 0;
  for (std::int64_t i = 0; i < xhat.elements(); ++i) {
    const double h = xhat.at(i), y = given.y.at(i);
    m2 += h * h, m3 += h * h * h, m4 += h * h * h * h, y1 += h * y, y2 += h * h * y;
  }
  const double divisor = m2 * m4 - m3 * m3;
  const double a = (y1 * m4 - y2 * m3) / divisor, b = (y2 * m2 - y1 * m3) / divisor;
  if (!std::isfinite(a) || !std::isfinite(b) || !(std::abs(b) >= 1e-3 * std::abs(a)) || a == 0) {
    return false;
  }
  form.set("C", rounded(a));
  form.set("k", rounded(-b / a));
  return true;
}

struct Near {
  double misfit;
  Form form;
};

// Every form whose norm takes such an x, nearest first.
std::vector<Near> all_forms(Backend& reference, const std::vector<Form>& forms,
                            const Views& views) {
  std::vector<Near> found;
  for (Form form : forms) {
    const Given& given = views.of(form);
    try {
      if (form.norm == "adanorm" && !fit_adanorm(reference, given, form)) continue;
      found.push_back({misfit(Trial(reference, given, form).y(), given.y), std::move(form)});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUsage) throw;  // the norm does not take these arrays
    }
  }
  std::ranges::stable_sort(found, {}, &Near::misfit);
  return found;
}

// Options that only norms with parameters, or norms of images, have.
const std::set<std::string> kOfParameters{"gain", "bias", "per_pixel"};

// Rows' norms of which a statistic counts as a constant in the backward.
constexpr std::pair<const char*, const char*> kDetached[] = {
    {"detachnorm", "backward treats mean and deviation as constants"},
    {"detachmean", "backward treats the mean as a constant"},
    {"detachvariance", "backward treats the deviation as a constant"}};

// dy * gain, element by element of rows with as many features as the gain has.
Tensor scaled(const Tensor& dy, const Tensor* gain) {
  Tensor result = dy.clone();
  for (std::int64_t i = 0; gain && i < result.elements(); ++i) {
    result.as<double>()[std::size_t(i)] *= gain->at(i % gain->elements());
  }
  return result;
}

class Gradients {
 public:
  Gradients(Backend& reference, const Given& given, Candidate& candidate, Trial& trial)
      : reference_(reference), given_(given), candidate_(candidate), trial_(trial) {}

  void measure() {
    const ComparedGradient own = trial_.gradient(*given_.dy);
    if (given_.dx) add("exact", own.dx);
    if (given_.dgain && own.dgain) candidate_.dgain = own.dgain->distance(*given_.dgain);
    if (!given_.dx || candidate_.dx.front().second <= 1) return;
    add_detached();
    if (trial_.gain() && given_.gain) add_gains();
  }

 private:
  void add(const std::string& way, const Judged& dx) {
    candidate_.dx.emplace_back(way, dx.distance(*given_.dx));
  }

  void add_detached() {
    if (!candidate_.form.norm.starts_with("layernorm")) return;
    Given plain;
    plain.x = given_.x.clone();
    Form form = candidate_.form;
    std::erase_if(form.options, [](const Option& o) { return kOfParameters.contains(o.first); });
    const Tensor dy = scaled(*given_.dy, trial_.gain());
    for (const auto& [norm, way] : kDetached) {
      form.norm = norm;
      add(way, Trial(reference_, plain, form).gradient(dy).dx);
    }
  }

  // dx with another gain than y was formed with.
  void add_gains() {
    Tensor other = trial_.gain()->clone(), none = other.clone();
    const double step = candidate_.form.adds_one ? -1 : 1;
    for (double& v : other.as<double>()) v += step;
    std::ranges::fill(none.as<double>(), 1);
    add(step < 0 ? "backward ignores the +1 on the gain" : "backward adds 1 to the gain",
        trial_.gradient(*given_.dy, &other).dx);
    add("backward ignores the gain", trial_.gradient(*given_.dy, &none).dx);
  }

  Backend& reference_;
  const Given& given_;
  Candidate& candidate_;
  Trial& trial_;
};

void add_gradients(Backend& reference, const Given& given, Candidate& candidate) {
  if (!given.dx && !given.dgain) return;  // else given_of saw to dy
  Trial trial(reference, given, candidate.form);
  Gradients(reference, given, candidate, trial).measure();
}

// Whatever has fewer options comes first, then a usual eps, then what is nearest.
bool is_plainer(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    const std::string eps = c.form.option("eps");
    const auto chosen = std::ranges::count_if(
        c.form.options, [](const Option& o) { return o.first != "gain" && o.first != "bias"; });
    return std::tuple(
        chosen + c.form.adds_one + c.form.evaluates + c.form.by_step + c.form.by_channel,
        eps != "1e-05" && eps != "1e-06", c.y);
  };
  return key(a) < key(b);
}

// Keeps the candidates whose gradient fits, the exact one first; keeps all if none fits.
void keep_by_gradient(std::vector<Candidate>& matches) {
  const auto fits = [](const Candidate& c) { return !c.gradient().empty(); };
  if (std::ranges::none_of(matches, fits)) return;
  std::erase_if(matches, [&](const Candidate& c) { return !fits(c); });
  std::ranges::stable_partition(matches,
                                [](const Candidate& c) { return c.gradient() == "exact"; });
}

std::vector<Candidate> nearest_forms(Backend& reference, const std::vector<Form>& forms,
                                     const Views& views) {
  std::vector<Candidate> chosen;
  for (Near& near : all_forms(reference, forms, views)) {
    if (!chosen.empty() && near.misfit >= kNear) break;
    const Given& given = views.of(near.form);
    Trial trial(reference, given, near.form);
    Judged y = trial.bounded_y();
    if (is_bf16(given.y)) add_bf16_rounding(y);
    chosen.push_back(
        {std::move(near.form), y.distance(given.y), trial.has_general_bounds(), {}, {}});
  }
  std::ranges::stable_sort(chosen, {}, &Candidate::y);
  return chosen;
}

}  // namespace

bool Answer::fits() const {
  if (matches.empty()) return false;
  const Candidate& c = matches[0];
  return (c.dx.empty() || c.gradient() == "exact" || c.norm() != c.form.norm) &&
         c.dgain.value_or(0) <= 1;
}

Answer identify(Backend& reference, const Given& given) {
  Answer answer;
  const Views views(given);
  std::vector<Candidate> chosen = nearest_forms(reference, forms_for(given), views);
  if (chosen.empty()) return answer;
  for (Candidate& c : chosen) {
    if (c.y <= 1) answer.matches.push_back(std::move(c));
  }
  if (answer.matches.empty()) {
    chosen.resize(std::min(chosen.size(), kListed));
    answer.nearest = std::move(chosen);
  }
  std::ranges::stable_sort(answer.matches, is_plainer);
  for (Candidate& c : answer.matches.empty() ? answer.nearest : answer.matches) {
    add_gradients(reference, views.of(c.form), c);
  }
  keep_by_gradient(answer.matches);
  answer.notes = undecided(answer.matches);
  if (!answer.matches.empty()) {
    const Form& form = answer.matches[0].form;
    const std::string line = place_of_rounding(reference, views.of(form), form);
    if (!line.empty()) answer.notes.push_back(line);
  }
  if (!given.after.empty()) {
    const Form& form = answer.best().form;
    for (std::string& line : running(reference, views.of(form), form)) {
      answer.notes.push_back(std::move(line));
    }
  }
  return answer;
}

}  // namespace keel::identify
