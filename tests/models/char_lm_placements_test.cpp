// SimpleNorm and nGPT as placements of the small Llama.
#include "tests/models/llama_run.h"

namespace keel::models {
namespace {

TEST_CASE("char_lm llama: SimpleNorm has a norm after every linear map, and one at the end") {
  LlamaOptions options = small_llama();
  options.layer.place = nn::NormPlace::kSimple;
  Names norms, expected{"norm/gain"};
  for (const std::string& name : parameters_of_llama(options)) {
    if (name.ends_with("/gain")) norms.insert(name);
  }
  for (const std::string layer : {"layer1/", "layer2/"}) {
    for (const char* map : {"attention/q", "attention/k", "attention/v", "attention/out",
                            "feed_forward/gate", "feed_forward/up", "feed_forward/down"}) {
      expected.insert(layer + map + "/norm/gain");
    }
  }
  CHECK(norms == expected);
}

TEST_CASE("char_lm llama: nGPT has scales in place of norms, and weights of length 1") {
  LlamaOptions options = small_llama();
  options.layer.place = nn::NormPlace::kNgpt;
  Names scales, expected{"softmax_scale"};
  const Graph g = graph_of(options);
  for (const Value leaf : g.leaves(NodeKind::kParameter)) {
    const Node& node = g.node(leaf);
    if (g.shape(leaf).rank() == 1) scales.insert(node.name);
    if (g.shape(leaf).rank() == 1) continue;
    const bool ends_in_width = g.shape(leaf)[1] == 16 && !node.name.ends_with("/q/weight");
    CAPTURE(node.name);
    CHECK(node.facts.unit == (ends_in_width ? UnitVectors::kRows : UnitVectors::kColumns));
  }
  for (const std::string layer : {"layer1/", "layer2/"}) {
    for (const char* scale : {"attention/alpha", "attention/qk_scale", "feed_forward/alpha",
                              "feed_forward/gate_scale", "feed_forward/up_scale"}) {
      expected.insert(layer + scale);
    }
  }
  CHECK(scales == expected);
}

TEST_CASE("char_lm llama: the weights of nGPT have length 1 at first, and its states too") {
  const auto backend = make_backend("reference");
  LlamaOptions options = small_llama();
  options.layer.place = nn::NormPlace::kNgpt;
  LlamaRun run(*backend, options);
  const Segment segment{1, 6, some_symbols(6)};
  const Tensor logits = run.logits(segment).to(DType::kF64);
  for (const std::string& name : parameters_of_llama(options)) {
    const Tensor w = run.variables().read(name).to(DType::kF64);
    if (w.shape().rank() != 2) continue;
    CAPTURE(name);
    double squares = 0;
    for (const double v : w.as<double>()) squares += v * v;
    // 16 is the width of the network: all vectors of 16 numbers have length 1.
    CHECK(squares == doctest::Approx(double(w.elements()) / 16).epsilon(1e-6));
  }
  // States of length 1 and weights of length 1 give cosines.
  for (const double logit : logits.as<double>()) CHECK(std::abs(logit) <= 1);
}

using Row = std::vector<double>;

Row unit_row(Row x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  for (double& v : x) v /= std::sqrt(squares);
  return x;
}

// An nGPT of one layer of two heads of two features, with one head of keys and values, by hand.
class PlainNgpt {
 public:
  explicit PlainNgpt(const Variables& variables) : variables_(variables) {}

  std::vector<Row> logits(const std::vector<std::int32_t>& symbols) const {
    std::vector<Row> h;
    const Row table = read("embedding/table");
    for (const std::int32_t s : symbols) h.emplace_back(&table[4 * s], &table[4 * s] + 4);
    h = stepped("attention/alpha", h, attention(h));
    std::vector<Row> f;
    for (const Row& x : h) f.push_back(feed(x));
    h = stepped("feed_forward/alpha", h, f);
    std::vector<Row> y;
    for (const Row& x : h) y.push_back(scaled(times(x, "softmax/weight"), "softmax_scale", 2));
    return y;
  }

 private:
  Row read(const std::string& name) const {
    const Tensor value = variables_.read(name, true).to(DType::kF64);
    return {value.as<double>().begin(), value.as<double>().end()};
  }
  Row times(const Row& x, const std::string& name) const {
    const Row w = read(name);
    Row y(w.size() / x.size());
    for (std::size_t k = 0; k < w.size(); ++k) y[k % y.size()] += x[k / y.size()] * w[k];
    return y;
  }
  Row scaled(Row x, const std::string& name, double factor) const {
    const Row s = read(name);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= s[i] * factor;
    return x;
  }

  std::vector<Row> stepped(const std::string& name, const std::vector<Row>& from,
                           const std::vector<Row>& to) const {
    const Row alpha = read("layer1/" + name);
    std::vector<Row> y;
    for (std::size_t t = 0; t < from.size(); ++t) {
      const Row a = unit_row(from[t]), b = unit_row(to[t]);
      Row sum(4);
      for (std::size_t i = 0; i < 4; ++i) sum[i] = a[i] + std::abs(alpha[i] * 0.1) * (b[i] - a[i]);
      y.push_back(unit_row(sum));
    }
    return y;
  }

  // Head `head` of x, rotated by the position, at length 1 and times the scales of its place.
  Row key_or_query(const Row& x, std::size_t head, std::size_t place, double position) const {
    const double c = std::cos(position), s = std::sin(position), a = x[2 * head],
                 b = x[2 * head + 1];
    const Row u = unit_row({a * c - b * s, b * c + a * s}),
              scale = read("layer1/attention/qk_scale");
    return {u[0] * scale[2 * place] * 2, u[1] * scale[2 * place + 1] * 2};
  }

  std::vector<Row> attention(const std::vector<Row>& h) const {
    const std::string of = "layer1/attention/";
    std::vector<Row> y;
    for (std::size_t t = 0; t < h.size(); ++t) {
      Row joined;
      for (std::size_t head = 0; head < 2; ++head) {
        const Row q = key_or_query(times(h[t], of + "q/weight"), head, head, double(t));
        double total = 0;
        Row sum(2);
        for (std::size_t e = 0; e <= t; ++e) {
          const Row k = key_or_query(times(h[e], of + "k/weight"), 0, head, double(e)),
                    v = times(h[e], of + "v/weight");
          const double p = std::exp(std::sqrt(2) * (q[0] * k[0] + q[1] * k[1]));
          total += p;
          for (std::size_t i = 0; i < 2; ++i) sum[i] += p * v[i];
        }
        for (const double v : sum) joined.push_back(v / total);
      }
      y.push_back(times(joined, of + "out/weight"));
    }
    return y;
  }

  Row feed(const Row& x) const {
    const std::string of = "layer1/feed_forward/";
    Row gate = scaled(times(x, of + "gate/weight"), of + "gate_scale", 2);
    const Row up = scaled(times(x, of + "up/weight"), of + "up_scale", 2);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    return times(gate, of + "down/weight");
  }

  const Variables& variables_;
};

TEST_CASE("char_lm llama: the logits of a small nGPT by hand") {
  const auto backend = make_backend("reference");
  LlamaOptions options = small_llama();
  options.layers = 1;
  options.width = 4;
  options.kv_heads = 1;
  options.layer.heads = 2;
  options.layer.place = nn::NormPlace::kNgpt;
  LlamaRun run(*backend, options);
  const std::vector<std::int32_t> symbols{3, 1, 5};
  const Segment segment{1, 3, symbols};
  run.logits(segment);  // makes the parameters
  for (const std::string& name : parameters_of_llama(options)) {
    const Tensor value = run.variables().read(name);
    if (value.shape().rank() == 1) {
      run.variables().write(name, test::random_normal(value.shape(), 7));
    }
  }
  const Tensor got = run.logits(segment);
  const std::vector<Row> expected = PlainNgpt(run.variables()).logits(symbols);
  for (std::int64_t e = 0; e < got.elements(); ++e) {
    CHECK(got.at(e) ==
          doctest::Approx(expected[std::size_t(e / 7)][std::size_t(e % 7)]).epsilon(1e-6));
  }
}

TEST_CASE("char_lm llama: every update brings the weights of nGPT back to length 1") {
  const train::Job job = llama_job({"model.place=ngpt", "train.optimizer=adam", "train.lr=0.1"});
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  Program step(*backend, variables, train::build_step(job), {.guard = "grad_norm"});
  test::Rows(job).feed(step, first_rows(job.train().batch));
  step.feed("lr", Tensor::scalar(float(job.train().lr)));
  const auto squares_of = [&](const std::string& name) {
    const Tensor w = variables.read(name).to(DType::kF64);
    std::map<std::int64_t, double> squares;  // of every row of the table
    for (std::int64_t e = 0; e < w.elements(); ++e) {
      squares[e / w.shape()[1]] += w.at(e) * w.at(e);
    }
    return squares;
  };
  for (int i = 0; i < 3; ++i) {
    const Tensor before = i > 0 ? variables.read("embedding/table") : Tensor{};
    step.feed("step", Tensor::of<std::int32_t>({}, {i}));
    step.run();
    for (const auto& [row, squares] : squares_of("embedding/table")) {
      CHECK(squares == doctest::Approx(1).epsilon(1e-5));
    }
    if (i > 0) CHECK(before.at(0) != variables.read("embedding/table").at(0));
  }
}

}  // namespace
}  // namespace keel::models
