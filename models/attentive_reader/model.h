// The Attentive Reader (Hermann et al. 2015), normalized as in Cooijmans et al. 2016 and Ba et al.
// 2016, section 6.2: it answers questions on passages whose entities are anonymous.
#pragma once

#include <memory>

#include "frontend/nn/layers.h"
#include "frontend/nn/recurrent.h"
#include "frontend/task/classification.h"
#include "frontend/task/task.h"
#include "models/attentive_reader/data.h"
#include "models/attentive_reader/files.h"

namespace keel::models {

// The maps that are followed by the norm.
enum class ReaderSites {
  kLstm,        // the maps of the LSTMs: of inputs, of states and of the cell
  kEverywhere,  // also those of attention and readout
};
constexpr auto choice_words(ReaderSites) {
  return std::to_array<std::string_view>({"lstm", "everywhere"});
}

// The positions that enter the batch statistics of the LSTMs' norms.
enum class ReaderStatistics {
  kText,    // the positions of passages and questions
  kPadded,  // also those after their ends, which repeat the text (Cooijmans et al. 2016)
};
constexpr auto choice_words(ReaderStatistics) {
  return std::to_array<std::string_view>({"text", "padded"});
}

enum class ReaderInit {
  kXavier,   // Xavier-uniform; orthogonal recurrent weights
  kRelease,  // square matrices 0.05 times orthogonal, others U(+-sqrt(6 / (in + out + 1)))
};
constexpr auto choice_words(ReaderInit) {
  return std::to_array<std::string_view>({"xavier", "release"});
}

struct AttentiveReaderOptions {
  std::string norm = "layernorm";
  nn::NormOf norm_of = nn::NormOf::kProducts;
  std::string input_norm = "";  // of the LSTMs' maps of inputs; empty: as norm
  ReaderSites sites = ReaderSites::kLstm;
  ReaderStatistics statistics = ReaderStatistics::kText;
  ReaderInit init = ReaderInit::kXavier;
  std::int64_t width = 240;  // of words, LSTMs and readout
  double dropout = 0.5;      // of word vectors, and of the readout
  double forget_bias = 0;
  bool bidirectional = false;  // LSTMs in both directions
  double start_noise = 0;      // in training, the deviation of noise on the LSTMs' first h

  QuestionForm corpus = QuestionForm::kQuestions;  // of a folder
  std::int64_t babi_task = 0;                      // of the corpus babi; 0: all of them
  std::int64_t sentences = 0;                      // of a passage that are kept; 0: all
  std::int64_t longest = 1000;                     // tokens of a passage that is trained on
  std::int64_t max_words = 0;                      // 0: every word has a number

  static constexpr auto fields() {
    using T = AttentiveReaderOptions;
    return std::tuple{
        option("norm", &T::norm, "norm of the LSTMs", norm_name()),
        option("norm_of", &T::norm_of, nn::kNormOfHelp),
        option(
            "input_norm", &T::input_norm,
            "norm of the products with the LSTMs' inputs, if it differs; empty: the same as norm",
            described("a norm, or empty")),
        option("sites", &T::sites,
               "places of the norm. lstm: the products with inputs and states, and the cell; "
               "everywhere: attention and readout too"),
        option("statistics", &T::statistics,
               "positions that norms over the batch count: the text, or repeated padding too "
               "(Cooijmans et al. 2016)"),
        option("init", &T::init,
               "initial weights. xavier: Xavier-uniform, recurrent weights orthogonal; release: as "
               "in the release of Cooijmans et al."),
        option("width", &T::width, "width of word vectors, LSTMs and readout", between(1, 65536)),
        option("dropout", &T::dropout, "dropout rate of word vectors and of the readout",
               fraction()),
        option("forget_bias", &T::forget_bias, "initial bias of the forget gate",
               between(-100, 100)),
        option("bidirectional", &T::bidirectional,
               "true to read passages and questions in both directions, with one LSTM for each "
               "direction"),
        option("start_noise", &T::start_noise,
               "standard deviation of the noise on the LSTMs' first state h in training",
               between(0, 100)),
        option("corpus", &T::corpus, "format of the files in the data folder"),
        option("babi_task", &T::babi_task, "number of the bAbI task; 0: all", between(0, 20)),
        option("sentences", &T::sentences, "number of sentences kept of a passage; 0: all",
               at_least(0)),
        option("longest", &T::longest, "most tokens of a training passage",
               between(1, double(kMostQuestionTokens))),
        option("max_words", &T::max_words, "size of the vocabulary; 0: all words", at_least(0))};
  }
  void validate() const;
};

// Passages and questions share one table E of word vectors. D_t is the LSTM's output at token t of
// the passage, and q is the last state of another LSTM over the question:
//     a_t = w tanh(W_d D_t + W_q q + b + (D_t B)(q B))    the last, a scalar product, in every unit
//     alpha = softmax of a over the tokens of the passage;   ctx = sum_t alpha_t D_t
//     g = tanh(W_c ctx + W_g q + W_m mean_t D_t + b_g)
//     logits = dropout(g) W_o + b_o                       over all words and entities
// With LSTMs in both directions D_t and q have the outputs of both, one after the other, and q ends
// with the state of the backward one at the first token.
// Word vectors have dropout as well, and first states are learned. The loss is the cross entropy of
// the answer. (The release adds 1e-8 inside the logarithm; keel does not.)
class AttentiveReaderNetwork final : public task::NetworkOf<AttentiveReaderOptions> {
 public:
  AttentiveReaderNetwork(const AttentiveReaderOptions& options,
                         std::shared_ptr<const ReaderNumbers> numbers)
      : NetworkOf(options), numbers_(std::move(numbers)) {}

  const std::shared_ptr<const ReaderNumbers>& numbers() const { return numbers_; }

  task::Assets assets() const override { return numbers_->texts(); }
  std::vector<task::Input> inputs(const task::Sizes& sizes) const override {
    return question_inputs(sizes);
  }
  task::Sizes sizes(std::int64_t batch) const override { return {batch, 32, 8}; }
  task::Outputs build(nn::Net& net, const task::Inputs& in) const override;
  task::Answers answers() const override { return task::Answers::kAllLines; }
  std::unique_ptr<task::Decoder> decoder(std::span<const std::string> lines,
                                         std::int64_t first) const override;

 private:
  // The outputs of an LSTM, or of one in each direction: h (length, rows, states()), the mask of
  // the sequences (length, rows), and h after the whole sequence (rows, states()).
  struct Read {
    Value h, mask, last;
  };

  std::int64_t states() const { return options_.width * (options_.bidirectional ? 2 : 1); }
  nn::FanInit init() const;
  nn::CellNorms cell_norms() const;
  nn::LayerOptions map_options(bool bias) const;
  nn::CellOptions cell_options() const;
  Value look_up(nn::Net& net, Value table, Value tokens) const;
  Read read(nn::Net& net, const std::string& name, Value x, Value mask) const;
  // alpha (length, rows, 1).
  Value attend(nn::Net& net, const Read& passage, Value q) const;
  Value read_out(nn::Net& net, const Read& passage, Value alpha, Value q) const;

  std::shared_ptr<const ReaderNumbers> numbers_;
};

class AttentiveReader final : public task::TaskWithOptions<AttentiveReaderOptions> {
 public:
  std::string_view name() const override { return "attentive_reader"; }
  std::string_view summary() const override {
    return "questions on passages, LSTMs and attention (Cooijmans et al. 2016, Ba et al. 2016)";
  }
  // The error, in per cent of the questions.
  std::vector<task::MetricInfo> metrics() const override { return task::error_metric(); }
  std::vector<task::OptionValues> data_forms(const std::string&) const override {
    return {{{"corpus", "questions"}}, {{"corpus", "babi"}}, {{"corpus", "lambada"}}};
  }
  task::Prepared prepare(const task::DataRequest& request,
                         const task::Assets* known) const override;
  std::shared_ptr<const task::Network> restore(const task::Assets& assets) const override {
    return restored(assets);
  }

 private:
  std::shared_ptr<const AttentiveReaderNetwork> restored(const task::Assets& assets) const;
};

}  // namespace keel::models
