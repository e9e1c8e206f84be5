// A classifier of table rows "x0,x1,class": those of DIR/table.csv, or two spirals made here.
#include <keel/program.h>

using namespace keel;

struct Options {
  std::string norm = "layernorm";
  static constexpr auto fields() {
    return std::tuple{option("norm", &Options::norm, "that of both hidden layers", norm_name())};
  }
  void validate() const { nn::Norm::parse(norm); }
};
const data::CsvTable kTable{.width = 2, .classes = {"red", "blue"}};

std::string spirals(std::uint64_t seed) {
  std::string csv;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t arm = i / 10 % 2;  // so that each tenth row is of either
    const double r = Philox(seed, 1).uniform(i), turn = 6 * r + 3.14159 * double(arm);
    csv += fmt::format("{},{},{}\n", r * std::cos(turn), r * std::sin(turn), kTable.classes[arm]);
  }
  return csv;
}

struct TableNetwork : task::NetworkOf<Options> {
  using NetworkOf::NetworkOf;
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return data::inputs_of(kTable.columns(), sizes);
  }
  task::Sizes sizes(std::int64_t batch) const override { return {batch}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override {
    const nn::LayerOptions normed{.norm = nn::Norm::parse(options_.norm)};
    const Value h = ops::relu(net.graph, nn::linear(net, "first", in["x"], 64, normed));
    const Value k = ops::relu(net.graph, nn::linear(net, "second", h, 64, normed));
    return task::classification(net.graph, nn::linear(net, "logits", k, 2), in["label"]);
  }
  std::vector<std::string> class_names() const override { return kTable.classes; }
  task::Answers answers() const override { return task::Answers::kPortions; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines,
                                         std::int64_t first) const override {
    return models::classify(kTable, lines, first);
  }
};

struct TableClassifier : task::TaskWithOptions<Options> {
  std::string_view name() const override { return "table"; }
  std::string_view summary() const override { return "two numbers a row, in two classes"; }
  std::vector<task::MetricInfo> metrics() const override { return task::error_metric(); }
  task::Prepared prepare(const task::DataRequest& from, const task::Assets*) const override {
    if (from.source == "builtin")
      return {restore({}), kTable.splits(spirals(from.seed), "spirals", from.train_rows)};
    return {restore({}), kTable.splits_of_file(from.source + "/table.csv", from.train_rows)};
  }
  std::shared_ptr<const task::Network> restore(const task::Assets&) const override {
    return std::make_shared<TableNetwork>(options_);
  }
};

int main(int argc, char** argv) { return program(argc, argv, {task_of<TableClassifier>()}); }
