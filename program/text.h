// The arguments of `keel text`. Filters read standard input and write standard output, one line for
// each line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/text/bleu.h"
#include "frontend/text/bpe_learner.h"
#include "frontend/text/clean.h"
#include "frontend/text/dictionary.h"
#include "frontend/text/moses_detokenizer.h"
#include "frontend/text/moses_tokenizer.h"

namespace keel::cli {

struct TokenizeArgs {
  text::MosesOptions options;
  bool no_escape = false;
  std::string prefixes;  // a file; empty: those of the language
};
int run_tokenize(TokenizeArgs args);

struct DetokenizeArgs {
  text::DetokenizeOptions options;
  bool no_unescape = false;
};
int run_detokenize(DetokenizeArgs args);

int run_lower();

struct NormalizeArgs {
  std::string form = "nfc";  // or nfkc
  std::string punctuation;   // a language; empty: signs stay as they are
};
int run_normalize(const NormalizeArgs& args);

struct CodesArgs {
  std::string codes;
};
int run_bpe_apply(const CodesArgs& args);
int run_bpe_undo();

// Reads the files, or standard input if there are none, and writes `output`, or standard output if
// it is empty.
struct LearnArgs {
  std::vector<std::string> files;
  std::string output;
  text::BpeLearnOptions options;
};
int run_bpe_learn(const LearnArgs& args);

struct VocabArgs {
  std::vector<std::string> files;
  std::string output;
  text::DictionaryOptions options;
};
int run_vocab(const VocabArgs& args);

struct CleanArgs {
  std::string source, target, out_source, out_target;
  text::CleanOptions options;
};
int run_clean(const CleanArgs& args);

struct IwsltArgs {
  std::string folder, out, source = "de", target = "en";
};
int run_iwslt14(const IwsltArgs& args);

struct BleuArgs {
  std::string translation, reference, tokens = "none";
  bool lower_case = false, json = false;
};
int run_bleu(const BleuArgs& args);

}  // namespace keel::cli
