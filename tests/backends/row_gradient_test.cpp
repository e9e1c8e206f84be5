// Gradients as rows against whole ones: the same bits, on every backend.
#include "src/ops/row_gradient.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "src/ops/embedding.h"
#include "src/ops/optimizer_step.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

// How ids are sampled: from the whole table and a little beyond it on both sides, all the same, or
// each once.
enum class SampledIds { kAny, kSame, kOnce };

struct TableCase {
  std::int64_t vocabulary, width, n, padding_id = -1;
  SampledIds sampled = SampledIds::kAny;
};

Tensor ids_of(const TableCase& t) {
  Tensor ids(DType::kI32, {t.n});
  const Philox random(4, 2);
  for (std::int64_t i = 0; i < t.n; ++i) {
    const auto any = std::int64_t{random.below(std::uint64_t(i), std::uint32_t(t.vocabulary + 4))};
    ids.as<std::int32_t>()[std::size_t(i)] =
        std::int32_t(t.sampled == SampledIds::kAny    ? any - 2
                     : t.sampled == SampledIds::kSame ? t.vocabulary / 2
                                                      : (i * 7919 + 3) % t.vocabulary);
  }
  return ids;
}

const TableCase kTables[] = {{1, 1, 1},
                             {7, 3, 1},
                             {9, 4, 50, 3},
                             {5, 2, 1023},
                             {3, 5, 1024, 0},
                             {300, 1, 1025, 9},
                             {4099, 19, 700, 0},
                             {3000, 7, 5000, 5},
                             {2500, 16, 33, -1, SampledIds::kSame},
                             {70, 257, 3000, 1, SampledIds::kSame},
                             {50, 12, 40, 35, SampledIds::kSame},
                             {2500, 12, 33, -1, SampledIds::kSame},
                             {7001, 4, 7001, 2, SampledIds::kOnce},
                             {11, 4999, 6, 0},
                             {33000, 3, 64, 0}};

// Runs body on the backend under test, with each of its instruction sets, and on the reference.
void for_each_table(const std::function<void(Backend&, const TableCase&)>& body) {
  for (const TableCase& t : kTables) {
    CAPTURE(t.vocabulary);
    CAPTURE(t.width);
    CAPTURE(t.n);
    for_each_target([&] { body(*make_backend(default_backend(), {2}), t); });
    body(*make_backend("reference"), t);
  }
}

void check_bytes(const Tensor& got, const Tensor& expected) {
  REQUIRE(got.type() == expected.type());
  const auto bytes = std::size_t(got.bytes());
  if (std::memcmp(got.data(), expected.data(), bytes) == 0) return;
  for (std::int64_t e = 0; e < got.elements(); ++e) {
    if (got.at(e) == expected.at(e)) continue;
    CAPTURE(e);
    CHECK(got.at(e) == expected.at(e));
    return;
  }
  CHECK_MESSAGE(false, "a zero of another sign");
}

TEST_CASE("backend row gradient: ids in groups, by another sort") {
  for_each_table([](Backend& backend, const TableCase& t) {
    OpCase c;
    c.inputs.push_back(ids_of(t));
    c.gradients = false;
    c.build = [&](Graph& g, const std::vector<Value>& v) {
      const Value y = g.add(kGroupIds, {v[0]}, GroupIdsAttrs{t.padding_id, t.vocabulary});
      return std::vector{y, y.at(1), y.at(2)};
    };
    const Results got = run_case(backend, c, DType::kF32);
    std::map<std::int32_t, std::vector<std::int32_t>> places;
    std::vector<std::int32_t> left_out, order, unique, begins;
    for (std::int32_t i = 0; i < std::int32_t(t.n); ++i) {
      const std::int32_t id = c.inputs[0].as<std::int32_t>()[std::size_t(i)];
      const bool is_taken = id >= 0 && id < t.vocabulary && id != t.padding_id;
      (is_taken ? places[id] : left_out).push_back(i);
    }
    for (const auto& [id, of_id] : places) {
      unique.push_back(id);
      begins.push_back(std::int32_t(order.size()));
      order.insert(order.end(), of_id.begin(), of_id.end());
    }
    unique.resize(std::size_t(t.n), std::int32_t(t.vocabulary));
    begins.resize(std::size_t(t.n) + 1, std::int32_t(order.size()));
    order.insert(order.end(), left_out.begin(), left_out.end());
    CHECK(std::ranges::equal(got.at("y0").as<std::int32_t>(), order));
    CHECK(std::ranges::equal(got.at("y1").as<std::int32_t>(), unique));
    CHECK(std::ranges::equal(got.at("y2").as<std::int32_t>(), begins));
  });
}

// ids, dy, p, two states, one that is not negative, lr, step and scale.
OpCase table_case(const TableCase& t, double scale = 0.37) {
  const Shape table{t.vocabulary, t.width};
  OpCase c;
  c.inputs.push_back(ids_of(t));
  c.inputs.push_back(random_f32({t.n, t.width}, 1));
  for (std::uint32_t i : {2, 3, 4, 5}) c.inputs.push_back(random_f32(table, i));
  for (double& v : c.inputs[5].as<double>()) v = v * v + 30;
  c.inputs[5] = c.inputs[5].to(DType::kF32).to(DType::kF64);
  c.inputs.push_back(Tensor::of<double>({}, {float(0.01)}));
  c.inputs.push_back(Tensor::of<std::int32_t>({}, {6}));
  c.inputs.push_back(Tensor::of<double>({}, {scale}));
  c.gradients = false;
  return c;
}

// The gradient of the table, whole and as rows.
struct BothGradients {
  Value whole;
  ParameterGradient rows;

  BothGradients(Graph& g, const std::vector<Value>& v, const TableCase& t)
      : whole(g.add(kEmbeddingBackward, {v[0], v[1]},
                    EmbeddingBackwardAttrs{t.padding_id, t.vocabulary})),
        rows(ops::row_gradient(g, v[0], v[1], {t.padding_id, t.vocabulary})) {}
};

TEST_CASE("backend row gradient: rows are those of the whole gradient, and so are their squares" *
          doctest::test_suite("slow")) {
  for_each_table([](Backend& backend, const TableCase& t) {
    OpCase c = table_case(t);
    c.build = [&](Graph& g, const std::vector<Value>& v) {
      const BothGradients d(g, v, t);
      return std::vector<Value>{d.whole, d.rows, d.rows.ids, ops::sum_squares(g, d.whole),
                                ops::sum_squares(g, d.rows, d.rows.ids, t.vocabulary)};
    };
    const Results got = run_case(backend, c, DType::kF32);
    const Tensor &whole = got.at("y0"), &rows = got.at("y1"), &ids = got.at("y2");
    Tensor written(whole.type());
    const auto row_bytes = std::size_t(whole.bytes() / t.vocabulary);
    auto* to = static_cast<std::byte*>(written.data());
    for (std::int64_t j = 0; j < t.n; ++j) {
      const auto* row = static_cast<const std::byte*>(rows.data()) + std::size_t(j) * row_bytes;
      const auto id = std::size_t(ids.as<std::int32_t>()[std::size_t(j)]);
      if (std::int64_t(id) < t.vocabulary) {
        std::memcpy(to + id * row_bytes, row, row_bytes);
      } else {
        CHECK(std::all_of(row, row + row_bytes, [](std::byte b) { return b == std::byte{0}; }));
      }
    }
    check_bytes(written, whole);
    check_bytes(got.at("y4"), got.at("y3"));
  });
}

// The updates of a table by its gradient, whole or as rows.
using Update = std::function<Value(Graph&, const std::vector<Value>&, const ParameterGradient&)>;

Update sgd(const SgdAttrs& attrs, bool has_u = true) {
  return [=](Graph& g, const std::vector<Value>& v, const ParameterGradient& d) {
    return ops::sgd_step(g, {v[2], d, v[6], v[8], has_u ? v[3] : Value{}, d.ids}, attrs);
  };
}
Update adam(const AdamAttrs& attrs) {
  return [=](Graph& g, const std::vector<Value>& v, const ParameterGradient& d) {
    return ops::adam_step(g, {v[2], d, v[6], v[8], v[7], v[3], v[5], d.ids}, attrs);
  };
}
Update adagrad(const AdagradAttrs& attrs) {
  return [=](Graph& g, const std::vector<Value>& v, const ParameterGradient& d) {
    return ops::adagrad_step(g, {v[2], d, v[6], v[8], v[5], d.ids}, attrs);
  };
}
Update graves(const GravesAttrs& attrs) {
  return [=](Graph& g, const std::vector<Value>& v, const ParameterGradient& d) {
    return ops::rmsprop_step(g, {v[2], d, v[6], v[8], v[5], v[3], v[4], d.ids}, attrs);
  };
}

const std::vector<Update>& exact_updates() {
  static const std::vector<Update> updates{
      sgd({.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}),
      sgd({.weight_decay = 0.1}, false),
      sgd({}, false),
      adam({.weight_decay = 0.1, .decoupled = true}),
      adam({.eps = 1e-3, .weight_decay = 0.1, .raw_eps = true}),
      adagrad({}),
      adagrad({.weight_decay = 0.1}),
      graves({.weight_decay = 0.1})};
  return updates;
}
// The same rules, whole and lazy.
struct LazyUpdate {
  Update whole, lazy;
};
const std::vector<LazyUpdate>& lazy_updates() {
  static const std::vector<LazyUpdate> updates{
      {sgd({.momentum = 0.9, .weight_decay = 0.1}),
       sgd({.momentum = 0.9, .weight_decay = 0.1, .lazy = true})},
      {adam({.weight_decay = 0.1}), adam({.weight_decay = 0.1, .lazy = true})},
      {adagrad({.weight_decay = 0.1}), adagrad({.weight_decay = 0.1, .lazy = true})},
      {graves({}), graves({.lazy = true})}};
  return updates;
}

// The outputs of an update that are there: p and the states.
std::vector<Value> outputs_of(const Graph& g, Value next) {
  std::vector<Value> all;
  for (int port = 0; port < int(g.node(next).outputs.size()); ++port) {
    if (g.shape(next.at(port)).rank() == 2) all.push_back(next.at(port));
  }
  return all;
}

// By whole gradients first, then by rows.
Results run_both(Backend& backend, const TableCase& t, OpCase& c, const LazyUpdate& update) {
  c.build = [&](Graph& g, const std::vector<Value>& v) {
    const BothGradients d(g, v, t);
    std::vector<Value> all = outputs_of(g, update.whole(g, v, d.whole));
    for (Value y : outputs_of(g, update.lazy(g, v, d.rows))) all.push_back(y);
    return all;
  };
  return run_case(backend, c, DType::kF32);
}

TEST_CASE("backend row gradient: updates by rows are those by the whole gradient" *
          doctest::test_suite("slow")) {
  for_each_table([](Backend& backend, const TableCase& t) {
    for (std::size_t i = 0; i < exact_updates().size(); ++i) {
      CAPTURE(i);
      const Update& update = exact_updates()[i];
      OpCase c = table_case(t);
      const Results got = run_both(backend, t, c, {update, update});
      const std::size_t outputs = got.size() / 2;
      for (std::size_t j = 0; j < outputs; ++j) {
        CAPTURE(j);
        check_bytes(got.at(fmt::format("y{}", outputs + j)), got.at(fmt::format("y{}", j)));
      }
    }
  });
}

TEST_CASE("backend row gradient: a lazy update changes the rows with a gradient alone" *
          doctest::test_suite("slow")) {
  for_each_table([](Backend& backend, const TableCase& t) {
    for (std::size_t i = 0; i < lazy_updates().size(); ++i) {
      CAPTURE(i);
      OpCase c = table_case(t);
      const Results got = run_both(backend, t, c, lazy_updates()[i]);
      const auto ids = c.inputs[0].as<std::int32_t>();
      const std::set<std::int32_t> taken(ids.begin(), ids.end());
      const Tensor &whole = got.at("y0"), &lazy = got.at(fmt::format("y{}", got.size() / 2));
      for (std::int64_t e = 0; e < lazy.elements(); ++e) {
        const auto id = std::int32_t(e / t.width);
        const bool is_taken = taken.contains(id) && id != t.padding_id;
        if (lazy.at(e) == (is_taken ? whole : c.inputs[2]).at(e)) continue;
        CAPTURE(e);
        CHECK(lazy.at(e) == (is_taken ? whole : c.inputs[2]).at(e));
        break;
      }
    }
  });
}

TEST_CASE("backend row gradient: a scale that is not finite changes nothing") {
  const TableCase t{300, 5, 40, 0};
  for (const double scale : {double(NAN), std::numeric_limits<double>::infinity()}) {
    for (const LazyUpdate& update : lazy_updates()) {
      OpCase c = table_case(t, scale);
      const auto backend = make_backend(default_backend(), {2});
      const Results got = run_both(*backend, t, c, update);
      const std::string by_rows = fmt::format("y{}", got.size() / 2);
      check_within(got.at(by_rows), c.inputs[2], [](auto) { return 0.0; });
    }
  }
}

TEST_CASE("backend row gradient: results do not depend on the thread count") {
  const TableCase t{3000, 67, 1500, 0};
  OpCase c = table_case(t);
  c.build = [&](Graph& g, const std::vector<Value>& v) {
    const BothGradients d(g, v, t);
    const Value next = adam({})(g, v, d.rows);
    return std::vector<Value>{d.whole, d.rows, next, next.at(1),
                              ops::sum_squares(g, d.rows, d.rows.ids, t.vocabulary)};
  };
  check_thread_counts(c);
}

}  // namespace
}  // namespace keel::test
