#include "models/translation/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "frontend/nn/embedding.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/positions.h"
#include "frontend/text/text_file.h"
#include "frontend/text/utf8.h"
#include "models/translation/corpus_layout.h"
#include "models/translation/pair_rows.h"
#include "models/translation/search_network.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/layout.h"
#include "src/ops/loss.h"
#include "src/ops/search.h"

namespace keel::models {
namespace {

using text::Dictionary;

const std::string kFormAsset = "form";

// The sentences of a split that are translated when its stream is evaluated: the first `most`; 0:
// all.
TranslationTask evaluation_of(SentencePairs pairs, const TranslationNetwork& network,
                              const TranslationModelOptions& options, std::int64_t most) {
  if (most > 0 && std::ssize(pairs.source) > most) {
    pairs.source.resize(static_cast<std::size_t>(most));
    pairs.target.resize(static_cast<std::size_t>(most));
  }
  TranslationTask task{network.subwords(), std::move(pairs.source), std::move(pairs.target)};
  task.language = options.languages.substr(options.languages.find('-') + 1);
  return task;
}

// The words between the commas.
std::vector<std::string> norms_listed(const std::string& list) {
  std::vector<std::string> names;
  for (const auto part : std::views::split(list, ',')) {
    if (!part.empty()) names.emplace_back(part.begin(), part.end());
  }
  return names;
}

// A limit of which 0 is none.
template <class T>
T limit_of(T option) {
  return option > 0 ? option : std::numeric_limits<T>::max();
}

using RawTargets = std::function<std::vector<std::string>(task::Split)>;

// Has the translations of a validation or test split measured against what people wrote. Of
// training pairs some were left out.
void refer_to_raw(TranslationTask& task, const RawTargets& raw, task::Split split,
                  bool lower_case) {
  if (!raw || split == task::Split::kTrain) return;
  task.lower_case = lower_case;
  task.raw_references = [raw, split, count = task.references.size()] {
    std::vector<std::string> lines = raw(split);
    lines.resize(count);
    return lines;
  };
}

}  // namespace

void TranslationModelOptions::validate() const {
  nn::ScaledNorm::parse(norm, scaling);
  for (const std::string& each : norms_listed(scaled_norms)) {
    check(nn::Norm::parse(each).name() == each, ErrorKind::kUsage,
          "scaled_norms: expected names of norms without options, got '{}'", each);
  }
  check(scaled_norms.empty() || !scaling.empty(), ErrorKind::kUsage,
        "scaled_norms: expected a scaling to be given, too (scaling), got only '{}'", scaled_norms);
  const bool has_sizes = source_symbols > 0 && (joint || target_symbols > 0);
  check(!fit_merges || (has_sizes && merges == 0 && min_count == 1), ErrorKind::kUsage,
        "fit_merges: expected source_symbols{}, and neither merges nor min_count",
        joint ? "" : " and target_symbols");
  check(most_ratio == 0 || most_ratio >= 1, ErrorKind::kUsage,
        "most_ratio: expected 0, or 1 or more, got {}", most_ratio);
  check(!joint || target_symbols == 0, ErrorKind::kUsage,
        "target_symbols: expected 0, for the languages share a dictionary (joint), got {}",
        target_symbols);
  if (!final_norm.empty()) nn::Norm::parse(final_norm);
  check(joint || embeddings != SharedEmbeddings::kAll, ErrorKind::kUsage,
        "embeddings: expected target or none, for the languages have dictionaries of their own "
        "(joint), got all");
  nn::check_widths(width, heads);
}

SearchOptions TranslationNetwork::search_options() const {
  // As many rows are searched at a time as have room for their keys and values, but no more than
  // keep a processor busy.
  constexpr std::int64_t kMostRows = 256, kMostKept = 1 << 28;  // elements
  const std::int64_t of_a_row = 2 * options_.layers * options_.width * room_for(options_.longest);
  // A norm over a sentence's positions changes what earlier ones were, at every step.
  const auto goes_on = [](const std::string& norm) {
    return norm.empty() || nn::Norm::parse(norm).name() != "instancenorm";
  };
  return {.beam = {options_.beam, options_.length_penalty, options_.longest},
          .most_rows = std::clamp<std::int64_t>(kMostKept / of_a_row, 1, kMostRows),
          .recompute = !goes_on(options_.norm) || !goes_on(options_.final_norm)};
}

task::Assets TranslationNetwork::assets() const {
  task::Assets assets = subwords_.texts();
  if (form_) assets.emplace(kFormAsset, form_->text());
  return assets;
}

task::Sizes TranslationNetwork::sizes(std::int64_t batch) const {
  constexpr std::int64_t kLength = 16;
  return {std::max<std::int64_t>(batch / kLength, 1), kLength, kLength};
}

nn::TransformerOptions TranslationNetwork::layer_options(bool is_encoder,
                                                         std::int64_t layer) const {
  const TranslationModelOptions& o = options_;
  nn::TransformerOptions options{.heads = o.heads,
                                 .feed_forward = o.feed_forward,
                                 .dropout = o.dropout,
                                 .attention_dropout = o.attention_dropout,
                                 .relu_dropout = o.relu_dropout,
                                 .place = o.place,
                                 .depth = {.layer = layer,
                                           .layers = o.layers,
                                           .branches = is_encoder ? 2 : 3,
                                           .decoder_layers = is_encoder ? o.layers : 0}};
  const bool is_chosen =
      o.sites == NormedSites::kAll || (o.sites == NormedSites::kEncoder && is_encoder);
  if (is_chosen) options.norm = scaled(o.norm);
  switch (o.init) {
    case TranslationInit::kFairseq:
      options.projection_init = nn::xavier(std::sqrt(0.5));
      options.projection_bias_init = [](std::int64_t width) {
        return nn::uniform(1 / std::sqrt(double(width)));
      };
      break;
    case TranslationInit::kKaiming:
      options.init = nn::fan_in_uniform;
      break;
    case TranslationInit::kX19Release:
      options.projection_init = options.out_init = nn::FanInit(nn::fan_in_uniform);
      break;
  }
  return options;
}

nn::ScaledNorm TranslationNetwork::scaled(const std::string& norm) const {
  const std::vector<std::string> names = norms_listed(options_.scaled_norms);
  const bool is_scaled =
      names.empty() || std::ranges::find(names, nn::Norm::parse(norm).name()) != names.end();
  return nn::ScaledNorm::parse(norm, is_scaled ? options_.scaling : "");
}

nn::ScaledNorm TranslationNetwork::final_norm(bool is_encoder) const {
  const bool is_chosen = options_.sites != NormedSites::kEncoder || is_encoder;
  const std::string& own = options_.final_norm.empty() ? options_.norm : options_.final_norm;
  if (!is_chosen) return nn::Norm::parse("layernorm");
  return scaled(own);
}

TranslationNetwork::Tables TranslationNetwork::tables(nn::Net& net) const {
  const double deviation = 1 / std::sqrt(double(options_.width));
  const auto table = [&](const char* name, const std::shared_ptr<const Subwords>& subwords) {
    return nn::Embedding(net, name, subwords->dictionary().size(), options_.width,
                         {.init = nn::normal(deviation), .padding_id = Dictionary::kPad})
        .table();
  };
  const Value target = table("target", subwords_.target);
  const bool one = options_.embeddings == SharedEmbeddings::kAll;
  const Value source = one ? target : table("source", subwords_.source);
  const bool apart = options_.embeddings == SharedEmbeddings::kNone;
  return {source, target, apart ? table("logits", subwords_.target) : target};
}

Value TranslationNetwork::embed(nn::Net& net, Value table, Value symbols, Value positions) const {
  Graph& g = net.graph;
  const Value x = ops::scale(g, ops::embedding(g, table, symbols, Dictionary::kPad),
                             std::sqrt(double(options_.width)));
  return nn::dropout(net, ops::add(g, x, positions), options_.dropout);
}

Value TranslationNetwork::encode(nn::Net& net, const Tables& of, const task::Inputs& in) const {
  const Value symbols = in["source"], mask = in["source_mask"];
  const std::int64_t length = net.graph.shape(symbols)[1];
  Value x = embed(net, of.source, symbols, nn::sinusoidal_positions(net, length, options_.width));
  for (std::int64_t i = 1; i <= options_.layers; ++i) {
    x = nn::encoder_layer(net, fmt::format("encoder{}", i), x, mask, layer_options(true, i));
  }
  if (!nn::has_final_norm(options_.place)) return x;
  return final_norm(true)(net, "encoder/norm", x, mask);
}

Value TranslationNetwork::decode(nn::Net& net, Value x, const task::Inputs& in,
                                 Value memory) const {
  const Value mask = in["target_mask"];
  for (std::int64_t i = 1; i <= options_.layers; ++i) {
    const nn::TransformerOptions options = layer_options(false, i);
    const std::string name = fmt::format("decoder{}", i);
    const nn::AttentionMemory encoded =
        nn::project_memory(net, name + "/memory_attention", {memory, in["source_mask"]}, options);
    x = nn::decoder_layer(net, name, {x, mask, encoded}, options);
  }
  return normed_output(net, x, mask);
}

Value TranslationNetwork::normed_output(nn::Net& net, Value x, Value mask) const {
  if (!nn::has_final_norm(options_.place)) return x;
  return final_norm(false)(net, "decoder/norm", x, mask);
}

task::Outputs TranslationNetwork::build(nn::Net& net, const task::Inputs& in) const {
  Graph& g = net.graph;
  const Tables of = tables(net);
  const Value memory = encode(net, of, in), symbols = in["target_in"];
  const Value positions = nn::sinusoidal_positions(net, g.shape(symbols)[1], options_.width);
  const Value h = decode(net, embed(net, of.target, symbols, positions), in, memory);
  const Shape shape = g.shape(h);
  const std::int64_t places = shape[0] * shape[1];
  const Value flat = ops::reshape(g, h, {places, shape[2]});
  const auto logits = nn::Linear::sharing(net, "logits", of.logits, {.bias = false});
  const Value all = logits(flat), labels = ops::reshape(g, in["target_out"], {places});
  const auto loss = [&](double smoothing) {
    return ops::cross_entropy(g, all, labels,
                              {.label_smoothing = smoothing, .ignore_index = kNoToken});
  };
  task::Outputs outputs{.loss_sum = loss(options_.label_smoothing).sum,
                        .metrics = {{.name = "perplexity", .sum = loss(0).sum}}};
  outputs.predictions = ranked(net, of, ops::take_rows(g, flat, in["asked"]));
  return outputs;
}

std::unique_ptr<task::Decoder> TranslationNetwork::decoder(std::span<const std::string> lines,
                                                           std::int64_t first) const {
  const LineForm form = form_ && !options_.tokenized ? *form_ : LineForm{};
  const Preparation prepare(form.is_raw, form.lower_case, form.source);
  TranslationTask task{subwords_, {}};
  task.origin = "standard input";
  task.language = form.target;
  task.as_text = form.is_raw;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::optional<std::size_t> wrong = text::first_invalid_utf8(lines[i]);
    check(!wrong, ErrorKind::kBadInput, "{}: expected UTF-8, got {:02x} at byte {}",
          text::place(task.origin, first + std::int64_t(i)),
          static_cast<unsigned char>(lines[i][wrong.value_or(0)]), wrong.value_or(0) + 1);
    task.sources.push_back(prepare(lines[i]));
  }
  task.first = first;
  return std::make_unique<Translator>(std::move(task), search_options());
}

task::WordCount TranslationNetwork::word_count(std::span<const std::string> lines) const {
  const LineForm form = form_ && !options_.tokenized ? *form_ : LineForm{};
  const Preparation prepare(form.is_raw, form.lower_case, form.source);
  task::WordCount count;
  for (const std::string& line : lines) {
    std::vector<std::int32_t> numbers = subwords_.source->encode(prepare(line), "standard input");
    numbers.pop_back();  // the end
    count.add(numbers, text::Dictionary::kUnk);
  }
  return count;
}

std::string TranslationNetwork::note_on_lines() const {
  if (form_ || options_.tokenized) return {};
  return "the checkpoint does not say how its training text was prepared: lines are taken as "
         "tokens, "
         "and translations are tokens (--tokenized)";
}

std::vector<task::MetricInfo> Translation::metrics() const {
  return {{.name = "perplexity", .unit = "", .of = task::perplexity_of},
          {.name = "bleu", .unit = "", .higher_is_better = true, .of = task::mean_of}};
}

TranslationOptions Translation::data_options(const task::DataRequest& request) const {
  const text::CleanOptions in_words{.max_tokens = limit_of(options_.most_words),
                                    .max_ratio = limit_of(options_.most_ratio)};
  text::CleanOptions by_length = in_words, in_subwords = in_words;
  by_length.max_ratio = std::numeric_limits<double>::max();
  in_subwords.max_tokens = options_.most_subwords;
  const bool counts_subwords = options_.most_subwords > 0 && request.source != "builtin";
  return {.source = request.source,
          .corpus = {.corpus = options_.corpus,
                     .languages = options_.languages,
                     .lower_case = options_.lower_case,
                     .tokenized = options_.tokenized,
                     .seed = request.seed,
                     .only = request.only},
          .clean = counts_subwords ? by_length : in_words,
          .clean_subwords = counts_subwords ? std::optional(in_subwords) : std::nullopt,
          .subwords = {.merges = options_.merges,
                       .fit_merges = options_.fit_merges,
                       .min_count = options_.min_count},
          .joint = options_.joint,
          .source_symbols = options_.source_symbols,
          .target_symbols = options_.target_symbols,
          .train_rows = request.train_rows};
}

std::vector<task::OptionValues> Translation::data_forms(const std::string& folder) const {
  std::vector<task::OptionValues> forms;
  for (const std::string& corpus : corpus_names()) {
    forms.push_back({{"corpus", corpus}, {"languages", languages_in(folder, corpus)}});
  }
  return forms;
}

std::shared_ptr<const TranslationNetwork> Translation::restored(const task::Assets& assets) const {
  const auto form = assets.find(kFormAsset);
  return std::make_shared<const TranslationNetwork>(
      options_, TranslationSubwords::parse(assets),
      form == assets.end() ? std::nullopt : std::optional(LineForm::parse(form->second)));
}

task::Prepared Translation::prepare(const task::DataRequest& request,
                                    const task::Assets* known) const {
  std::shared_ptr<const TranslationNetwork> network = known ? restored(*known) : nullptr;
  const TranslationOptions options = data_options(request);
  TranslationData data =
      TranslationData::load(options, network ? network->subwords() : TranslationSubwords{});
  if (!network) {
    const bool is_synthetic = request.source == "builtin";
    network = std::make_shared<const TranslationNetwork>(
        options_, data.subwords, is_synthetic ? LineForm{} : line_form_of(options.corpus));
  }
  const auto number = [=, options = options_, origin = data.corpus.origin,
                       raw = data.corpus.raw_targets](task::Split split, SentencePairs sentences,
                                                      data::SplitNotes notes) {
    NumberedPairs pairs = numbered_pairs(sentences, network->subwords(),
                                         fmt::format("{}, {}", origin, data::name_of(split)));
    const std::int64_t most = split == task::Split::kTest ? 0 : options.translated_rows;
    TranslationTask task = evaluation_of(std::move(sentences), *network, options, most);
    refer_to_raw(task, raw, split, options.lower_case);
    return std::make_shared<PairRows>(std::move(notes), std::move(pairs),
                                      [task, search = network->search_options()] {
                                        return std::make_unique<Translator>(task, search);
                                      });
  };
  return {network, data::splits_of(std::move(data.corpus), number)};
}

}  // namespace keel::models
