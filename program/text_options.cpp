// The command line of `keel text`.
#include <memory>

#include "frontend/text/languages.h"
#include "program/subcommand.h"
#include "program/text.h"

namespace keel::cli {
namespace {

// A subcommand with its arguments and its function.
template <class Args, class Run>
std::pair<CLI::App*, Args&> add_action(CLI::App& parent, const Command& command,
                                       std::pair<const char*, const char*> name_and_about,
                                       Run run) {
  CLI::App* app = parent.add_subcommand(name_and_about.first, name_and_about.second);
  auto args = std::make_shared<Args>();
  int& code = command.code;
  app->callback([args, &code, run] { code = run(*args); });
  return {app, *args};
}

struct NoArgs {};

std::string expect_language(const std::string& code) {
  if (text::is_language(code)) return "";
  return fmt::format("expected the code of a language (ISO 639-1), such as en, got '{}'", code);
}

void add_language(CLI::App& app, std::string& language) {
  app.add_option("--language", language, "of the text: en, de, fr, ...")
      ->check(expect_language)
      ->capture_default_str();
}

void add_tokenize(CLI::App& text, const Command& command) {
  auto [app, args] = add_action<TokenizeArgs>(
      text, command, {"tokenize", "split text into tokens, as Moses does"}, run_tokenize);
  add_language(*app, args.options.language);
  app->add_flag("--aggressive", args.options.aggressive_hyphens, "'a-b' becomes 'a @-@ b'");
  app->add_flag("--no-escape", args.no_escape, "leave & | < > ' \" [ ] as they are");
  app->add_flag("--keep-last-period", args.options.keep_last_period,
                "after a prefix at a line's end too, as sacremoses does");
  app->add_option("--prefixes", args.prefixes, "a file of words that keep their full stop")
      ->default_str("Moses' for en and de, else those of en");
  app->footer(
      "examples:\n  echo \"Don't.\" | keel text tokenize --language en\n"
      "  keel text tokenize --language de < raw.de > tok.de");
}

void add_detokenize(CLI::App& text, const Command& command) {
  auto [app, args] = add_action<DetokenizeArgs>(
      text, command, {"detokenize", "text as people write it, from tokens"}, run_detokenize);
  add_language(*app, args.options.language);
  app->add_flag("--no-unescape", args.no_unescape, "leave &amp; and so on as they are");
  app->footer("examples:\n  echo 'don &apos;t go .' | keel text detokenize");
}

void add_case(CLI::App& text, const Command& command) {
  add_action<NoArgs>(text, command, {"lower", "convert capitals to lower case"}, [](const NoArgs&) {
    return run_lower();
  }).first->footer("examples:\n  echo 'TEN' | keel text lower");
  auto [app, args] = add_action<NormalizeArgs>(
      text, command, {"normalize", "characters of several parts in one (Unicode NFC)"},
      run_normalize);
  add_choice(*app, "--form", args.form, {"nfc", "nfkc"}, "nfkc: ligatures and wide forms too");
  app->add_option("--punctuation", args.punctuation,
                  "a language, en, de, ...: one way to write quotes, dashes and blanks, as Moses "
                  "does for WMT; control characters become blanks")
      ->check(expect_language)
      ->default_str("left as it is");
  app->footer(
      "examples:\n  keel text normalize --form nfkc < in.txt > out.txt\n"
      "  keel text normalize --punctuation de < raw.de > plain.de");
}

void add_clean(CLI::App& text, const Command& command) {
  auto [app, args] =
      add_action<CleanArgs>(text, command, {"clean", "drop pairs by their lengths"}, run_clean);
  app->add_option("source", args.source, "a file of tokens, a sentence a line")->required();
  app->add_option("target", args.target, "the file that goes with it")->required();
  app->add_option("out_source", args.out_source, "output: the kept lines of the first")->required();
  app->add_option("out_target", args.out_target, "output: the kept lines of the second")
      ->required();
  app->add_option("--min", args.options.min_tokens, "the fewest tokens")->capture_default_str();
  app->add_option("--max", args.options.max_tokens, "the most tokens")->capture_default_str();
  app->add_option("--ratio", args.options.max_ratio,
                  "largest ratio of the longer side to the shorter")
      ->capture_default_str();
  app->footer("examples:\n  keel text clean tok.de tok.en clean.de clean.en --max 80");
}

void add_iwslt14(CLI::App& text, const Command& command) {
  auto [app, args] = add_action<IwsltArgs>(
      text, command, {"iwslt14", "prepare IWSLT14 from its tagged files"}, run_iwslt14);
  app->add_option("folder", args.folder, "de-en of the release")->required();
  app->add_option("out", args.out, "folder for train, valid and test, .de and .en")->required();
  app->footer("examples:\n  keel text iwslt14 DIR/de-en prepared");
}

template <class Args>
void add_files(CLI::App& app, Args& args) {
  app.add_option("files", args.files, "plain, .gz or .xz; none: standard input");
  app.add_option("--output", args.output, "a file, written whole or not at all")
      ->default_str("standard output");
}

void add_bpe(CLI::App& text, const Command& command) {
  CLI::App* bpe = text.add_subcommand("bpe", "byte-pair encoding: words as sub-words");
  bpe->require_subcommand(1);
  {
    auto [app, args] = add_action<LearnArgs>(
        *bpe, command, {"learn", "merges from tokens, of several files jointly"}, run_bpe_learn);
    add_files(*app, args);
    app->add_option("--merges", args.options.merges, "the most merges")->capture_default_str();
    app->add_option("--min-count", args.options.min_count, "least count of a pair that is merged")
        ->capture_default_str();
    app->footer("examples:\n  keel text bpe learn train.de train.en --merges 10000 --output codes");
  }
  auto [app, args] = add_action<CodesArgs>(
      *bpe, command, {"apply", "cut words, with '@@ ' between their parts"}, run_bpe_apply);
  app->add_option("codes", args.codes, "a file of merges, of subword-nmt too")->required();
  app->footer("examples:\n  keel text bpe apply codes < train.de > train.bpe.de");
  add_action<NoArgs>(*bpe, command, {"undo", "join sub-words into words"}, [](const NoArgs&) {
    return run_bpe_undo();
  }).first->footer("examples:\n  echo 'lo@@ w@@ er' | keel text bpe undo");
  bpe->footer(
      "examples:\n  keel text bpe learn train.de train.en --output codes\n"
      "  keel text bpe apply codes < train.de > train.bpe.de");
}

void add_vocab(CLI::App& text, const Command& command) {
  auto [app, args] = add_action<VocabArgs>(
      text, command, {"vocab", "a dictionary in fairseq's form: symbol and count"}, run_vocab);
  add_files(*app, args);
  app->add_option("--min-count", args.options.min_count, "least count of a symbol that is kept")
      ->capture_default_str();
  app->add_option("--max-symbols", args.options.max_symbols, "the most symbols; 0: no limit")
      ->capture_default_str();
  app->add_option("--multiple", args.options.multiple,
                  "pad to a multiple, 4 special symbols included")
      ->capture_default_str();
  app->footer("examples:\n  keel text vocab train.bpe.de train.bpe.en --output dict.txt");
}

void add_bleu(CLI::App& text, const Command& command) {
  auto [app, args] = add_action<BleuArgs>(
      text, command, {"bleu", "BLEU of translations against one reference each"}, run_bleu);
  app->add_option("translation", args.translation, "a file, a sentence a line")->required();
  app->add_option("reference", args.reference, "the file that goes with it")->required();
  add_choice(*app, "--tokenize", args.tokens, {"none", "compound", "13a"},
             "words as given, with compounds split (WMT En-De), or as sacrebleu's 13a, smoothed");
  app->add_flag("--lowercase", args.lower_case, "ignore case");
  app->add_flag("--json", args.json, "machine-readable output on stdout");
  app->footer(
      "examples:\n  keel text bleu said.en test.en\n"
      "  keel text bleu said.en test.en --tokenize 13a --json");
}

}  // namespace

void add_text(Command command) {
  CLI::App* text = command.app.add_subcommand("text", "prepare and score text for translation");
  text->require_subcommand(1);
  add_tokenize(*text, command);
  add_detokenize(*text, command);
  add_case(*text, command);
  add_clean(*text, command);
  add_iwslt14(*text, command);
  add_bpe(*text, command);
  add_vocab(*text, command);
  add_bleu(*text, command);
  text->footer(
      "tokenize, detokenize, lower, normalize, bpe apply and bpe undo are filters: a line of\n"
      "standard output for each of standard input\n\n"
      "examples:\n"
      "  keel text tokenize --language de < raw.de | keel text lower > tok.de\n"
      "  keel text bpe learn tok.de tok.en --merges 10000 --output codes\n"
      "  keel text bpe apply codes < tok.de > bpe.de\n"
      "  keel text bleu said.en test.en");
}

}  // namespace keel::cli
