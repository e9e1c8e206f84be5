#include "models/attentive_reader/model.h"

#include <cmath>

#include "frontend/task/classification.h"
#include "models/attentive_reader/answerer.h"
#include "models/attentive_reader/builtin.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "src/ops/search.h"
#include "src/ops/softmax.h"

namespace keel::models {
namespace {

// The attention's score of padding: its exponential is 0, and it is finite, for infinities make NaN
// of differences.
constexpr double kPadded = -1e9;
constexpr double kReleaseGain = 0.05;

// (rows, length, ...) as (length, rows, ...), and back.
Value turned(Graph& g, Value x) {
  std::vector<std::int64_t> axes{1, 0};
  if (g.shape(x).rank() == 3) axes.push_back(2);
  return ops::transpose(g, x, axes);
}

// mask (length, rows) as numbers (length, rows, 1).
Value weights_of(Graph& g, Value mask, DType dtype) {
  const Shape shape = g.shape(mask);
  return ops::cast(g, ops::reshape(g, mask, {shape[0], shape[1], 1}), dtype);
}

// The sum over the time steps of x (length, rows, width) times weights (length, rows, 1).
Value sum_over_steps(Graph& g, Value x, Value weights) {
  return ops::sum(g, ops::mul(g, x, weights), {0});
}

// 1 at the last token of every sequence, (length, rows, 1): the mask without the next one's.
Value at_last(Graph& g, Value weights) {
  const Shape shape = g.shape(weights);
  const Value behind = ops::slice_axis(g, weights, 0, 1, shape[0] - 1);
  return ops::sub(g, weights, ops::pad(g, behind, {0, 0, 0}, {1, 0, 0}, 0));
}

// For every place of sequences (length, rows) the place that the text has there when each sequence
// is turned around within its own length, which the mask tells; padding stays. Places count rows
// first.
Value turned_places(Graph& g, Value mask, DType dtype) {
  const Shape shape = g.shape(mask);
  const std::int64_t length = shape[0], rows = shape[1];
  Tensor step(DType::kF64, shape), row(DType::kF64, shape);
  for (std::int64_t e = 0; e < length * rows; ++e) {
    step.as<double>()[std::size_t(e)] = double(e / rows);
    row.as<double>()[std::size_t(e)] = double(e % rows);
  }
  const Value steps = g.constant(step.to(dtype)), all_rows = g.constant(row.to(dtype));
  const Value count = ops::sum(g, ops::cast(g, mask, dtype), {0}, true);
  const Value last = ops::sub(g, count, g.constant(1.0, dtype));
  const Value at = ops::select(g, mask, ops::sub(g, last, steps), steps);
  return ops::cast(g, ops::add(g, ops::scale(g, at, double(rows)), all_rows), DType::kI32);
}

// x (length, rows, width) with these places.
Value at_places(Graph& g, Value x, Value places) {
  const Shape shape = g.shape(x);
  return ops::embedding(g, ops::reshape(g, x, {shape[0] * shape[1], shape[2]}), places);
}

}  // namespace

void AttentiveReaderOptions::validate() const {
  nn::Norm::parse(norm);
  if (input_norm.empty()) return;
  nn::Norm::parse(input_norm);
  check(norm_of == nn::NormOf::kProducts, ErrorKind::kUsage,
        "input_norm: expected none where norm_of is sum, got '{}'", input_norm);
}

nn::FanInit AttentiveReaderNetwork::init() const {
  if (options_.init == ReaderInit::kXavier) return nn::xavier();
  return [](std::int64_t fan_in, std::int64_t fan_out) {
    const bool is_square = fan_out % fan_in == 0 && fan_out / fan_in <= 4;
    return is_square ? nn::orthogonal(kReleaseGain, fan_out / fan_in)
                     : nn::uniform(std::sqrt(6.0 / double(fan_in + fan_out + 1)));
  };
}

nn::CellNorms AttentiveReaderNetwork::cell_norms() const {
  nn::CellNorms norms = nn::lstm_norms(nn::Norm::parse(options_.norm), options_.norm_of);
  if (options_.input_norm.empty()) return norms;
  norms.input = nn::lstm_norms(nn::Norm::parse(options_.input_norm)).input;
  return norms;
}

// A map of attention or readout.
nn::LayerOptions AttentiveReaderNetwork::map_options(bool bias) const {
  nn::LayerOptions options{.bias = bias, .weight_init = init()};
  if (options_.sites == ReaderSites::kEverywhere) options.norm = nn::Norm::parse(options_.norm);
  return options;
}

// Word vectors (length, rows, width) of tokens (rows, length). Dropout draws by rows.
Value AttentiveReaderNetwork::look_up(nn::Net& net, Value table, Value tokens) const {
  const Value x = ops::embedding(net.graph, table, tokens);
  return turned(net.graph, nn::dropout(net, x, options_.dropout));
}

nn::CellOptions AttentiveReaderNetwork::cell_options() const {
  nn::CellOptions cell{.norms = cell_norms(),
                       .input_init = init(),
                       .forget_bias = options_.forget_bias,
                       .learns_start = true,
                       .start_noise = options_.start_noise};
  if (options_.init == ReaderInit::kRelease) cell.recurrent_init = init();
  return cell;
}

AttentiveReaderNetwork::Read AttentiveReaderNetwork::read(nn::Net& net, const std::string& name,
                                                          Value x, Value mask) const {
  Graph& g = net.graph;
  const std::int64_t width = options_.width;
  const nn::Lstm lstm(net, name, width, width, cell_options());
  // Without the mask the LSTM goes on after the end, where nobody looks at it.
  const bool counts_padding = options_.statistics == ReaderStatistics::kPadded;
  const Value turned_mask = turned(g, mask);
  const Value lstm_mask = counts_padding ? Value{} : turned_mask;
  const Value h = lstm(x, lstm_mask).h;
  const Value ends = at_last(g, weights_of(g, turned_mask, net.dtype));
  const Value last = sum_over_steps(g, h, ends);
  if (!options_.bidirectional) return {h, turned_mask, last};
  const nn::Lstm back(net, name + "_backward", width, width, cell_options());
  const Value places = turned_places(g, turned_mask, net.dtype);
  const Value back_h = back(at_places(g, x, places), lstm_mask).h;
  return {ops::concat(g, {h, at_places(g, back_h, places)}, 2), turned_mask,
          ops::concat(g, {last, sum_over_steps(g, back_h, ends)}, 1)};
}

Value AttentiveReaderNetwork::attend(nn::Net& net, const Read& passage, Value q) const {
  Graph& g = net.graph;
  const std::int64_t width = options_.width;
  const Shape shape = g.shape(passage.h);
  const nn::Linear of_passage(net, "attention/passage", states(), width, map_options(true));
  const nn::Linear of_question(net, "attention/question", states(), width, map_options(false));
  const nn::Linear bilinear(net, "attention/bilinear", states(), states(),
                            {.bias = false, .weight_init = init()});
  const nn::Linear score(net, "attention/score", width, 1, {.bias = false, .weight_init = init()});
  const Value product = ops::sum(g, ops::mul(g, bilinear(passage.h), bilinear(q)), {2}, true);
  const Value maps = ops::add(g, of_passage(passage.h, {.mask = passage.mask}), of_question(q));
  const Value a = score(ops::tanh(g, ops::add(g, maps, product)));
  const Value scores = turned(g, ops::reshape(g, a, {shape[0], shape[1]}));
  const Value known = turned(g, passage.mask);
  const Value kept = ops::select(g, known, scores, g.constant(kPadded, net.dtype));
  return ops::reshape(g, turned(g, ops::softmax(g, kept)), {shape[0], shape[1], 1});
}

Value AttentiveReaderNetwork::read_out(nn::Net& net, const Read& passage, Value alpha,
                                       Value q) const {
  Graph& g = net.graph;
  const Value weights = weights_of(g, passage.mask, net.dtype);
  const Value count = ops::maximum(g, ops::sum(g, weights, {0}), g.constant(1.0, net.dtype));
  const Value mean = ops::div(g, sum_over_steps(g, passage.h, weights), count);
  const std::int64_t width = options_.width;
  const Value context = nn::linear(net, "readout/context", sum_over_steps(g, passage.h, alpha),
                                   width, map_options(true));
  const Value of_question = nn::linear(net, "readout/question", q, width, map_options(false));
  const Value of_mean = nn::linear(net, "readout/mean", mean, width, map_options(false));
  return ops::tanh(g, ops::add(g, ops::add(g, context, of_question), of_mean));
}

task::Outputs AttentiveReaderNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const std::int64_t symbols = numbers_->size();
  const double bound = std::sqrt(6.0 / double(symbols + options_.width + 1));
  const Value table = net.parameter("words", {symbols, options_.width}, nn::uniform(bound));
  const Read passage = read(net, "passage", look_up(net, table, in["passage"]), in["passage_mask"]);
  const Value q =
      read(net, "question", look_up(net, table, in["question"]), in["question_mask"]).last;
  const Value alpha = attend(net, passage, q);
  const Value readout = nn::dropout(net, read_out(net, passage, alpha, q), options_.dropout);
  const Value logits = nn::linear(net, "logits", readout, symbols, {.weight_init = init()});
  task::Outputs outputs = task::classification(g, logits, in["answer"]);
  const Shape shape = g.shape(alpha);
  outputs.predictions = {{"answer", ops::top_k(g, logits, 1).indices},
                         {"alpha", turned(g, ops::reshape(g, alpha, {shape[0], shape[1]}))}};
  return outputs;
}

std::unique_ptr<task::Decoder> AttentiveReaderNetwork::decoder(std::span<const std::string> lines,
                                                               std::int64_t) const {
  return std::make_unique<Answerer>(questions_of_lines(lines), numbers_, options_.sentences);
}

std::shared_ptr<const AttentiveReaderNetwork> AttentiveReader::restored(
    const task::Assets& assets) const {
  return std::make_shared<const AttentiveReaderNetwork>(
      options_, std::make_shared<const ReaderNumbers>(ReaderNumbers::parse(assets)));
}

task::Prepared AttentiveReader::prepare(const task::DataRequest& request,
                                        const task::Assets* known) const {
  QuestionCorpus corpus =
      request.source == "builtin"
          ? make_who_did()
          : read_question_corpus(request.source, {.form = options_.corpus,
                                                  .babi_task = options_.babi_task,
                                                  .seed = request.seed,
                                                  .only = request.only});
  data::keep_first(corpus.train, request.train_rows, corpus.skipped);
  const auto network =
      known
          ? restored(*known)
          : std::make_shared<const AttentiveReaderNetwork>(
                options_, std::make_shared<const ReaderNumbers>(corpus.train, options_.max_words));
  const auto number = [numbers = network->numbers(),
                       options = ReaderDataOptions{options_.sentences, options_.longest}](
                          task::Split split, const std::vector<Question>& questions,
                          data::SplitNotes notes) {
    return question_rows(split, questions, std::move(notes), numbers, options);
  };
  return {network, data::splits_of(std::move(corpus), number)};
}

}  // namespace keel::models
