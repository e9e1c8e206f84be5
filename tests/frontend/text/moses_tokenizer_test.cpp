// Moses' tokens, rule by rule, and back.
#include "frontend/text/moses_tokenizer.h"

#include "frontend/text/moses_detokenizer.h"
#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

struct TokenCase {
  const char *text, *tokens;
};

void check_tokens(const MosesOptions& options, const std::vector<TokenCase>& cases) {
  const MosesTokenizer tokenize(options);
  for (const TokenCase& c : cases) CHECK(tokenize(c.text) == c.tokens);
}

TEST_CASE("moses: white space, control characters and signs") {
  check_tokens(
      {}, {{"", ""},
           {" \t ", ""},
           {"  a \t b\u00A0c\u2028d\u0085e ", "a b c d e"},
           {"a\x01"
            "b",
            "ab"},
           {"Hello, world!", "Hello , world !"},
           {"so (a/b): 5% of 7\u20AC; 1\u00BD?", "so ( a / b ) : 5 % of 7 \u20AC ; 1 \u00BD ?"},
           {"\u201Ccaf\u00E9\u201D na\u00EFve \u4E2D\u6587 `x`",
            "\u201C caf\u00E9 \u201D na\u00EFve \u4E2D\u6587 `x`"},
           {"a-b -c -- d", "a-b -c -- d"}});
}

TEST_CASE("moses: hyphens are split where that is asked for") {
  check_tokens({.aggressive_hyphens = true},
               {{"well-known a-b-c", "well @-@ known a @-@ b @-@ c"}, {"-a b- --", "-a b- --"}});
}

TEST_CASE("moses: dots that stand together") {
  check_tokens({}, {{"wait...what", "wait ... what"},
                    {"wait..", "wait .."},
                    {"...", "..."},
                    {"one. . two", "one . . two"},
                    {".... x", ".... x"}});
}

TEST_CASE("moses: commas, but not between digits") {
  check_tokens({}, {{"1,000,5 a,b,c", "1,000,5 a , b , c"},
                    {"a1,b 7, 8,", "a1 , b 7 , 8 ,"},
                    {",x,,y", ", x , , y"}});
}

TEST_CASE("moses: apostrophes by language") {
  const std::vector<TokenCase> english = {
      {"don't", "don &apos;t"},     {"the dogs' house", "the dogs &apos; house"},
      {"1990's", "1990 &apos;s"},   {"a 'quote' b", "a &apos; quote &apos; b"},
      {"5'7", "5 &apos; 7"},        {"'tis", "&apos;tis"},
      {"o'c'd", "o &apos;c&apos;d"}};
  check_tokens({}, english);
  check_tokens({.language = "fr"}, {{"l'eau d'or", "l&apos; eau d&apos; or"}});
  check_tokens({.language = "it"}, {{"un'ora", "un&apos; ora"}});
  check_tokens({.language = "de"}, {{"l'eau wie geht's", "l &apos; eau wie geht &apos; s"}});
}

TEST_CASE("moses: full stops that belong to a word") {
  check_tokens({}, {{"Mr. Smith met J. Doe. Then", "Mr. Smith met J. Doe . Then"},
                    {"e.g. This, U.S. Army", "e.g. This , U.S. Army"},
                    {"an abbr. value", "an abbr. value"},
                    {"No. 5 and No. Five", "No. 5 and No . Five"},
                    {"am 3. Mai", "am 3 . Mai"},
                    {"the U.S.", "the U.S ."},
                    {"Mr.", "Mr ."},
                    {".", "."},
                    {"he said 'no.'", "he said &apos; no . &apos;"},
                    {".'", ". &apos;"}});
  check_tokens({.language = "de"}, {{"am 3. Mai um 100. Uhr", "am 3. Mai um 100 . Uhr"},
                                    {"z.B. Herr Dr. Wer", "z.B. Herr Dr. Wer"}});
  check_tokens({.keep_last_period = true}, {{"the U.S.", "the U.S."}, {"the end.", "the end ."}});
}

TEST_CASE("moses: what is escaped, and back") {
  check_tokens({}, {{"a & b | [c] <d> \"e\"",
                     "a &amp; b &#124; &#91; c &#93; &lt; d &gt; &quot; e &quot;"}});
  check_tokens({.escape = false}, {{"a & b's", "a & b 's"}});
  CHECK(moses_unescaped("&amp;lt; &#124;&lt;&gt;&apos;&quot;&#91;&#93; &bar;&bra;&ket; &x &") ==
        "&lt; |<>'\"[] |[] &x &");
  CHECK(moses_escaped("&lt;") == "&amp;lt;");
}

TEST_CASE("moses: a sentence of a thousand words") {
  std::string text, tokens;
  for (int i = 0; i < 1000; ++i) {
    text += "word, ";
    tokens += "word , ";
  }
  tokens.pop_back();
  CHECK((MosesTokenizer()(text) == tokens));
}

TEST_CASE("moses: prefixes of one's own") {
  const NonbreakingPrefixes own =
      NonbreakingPrefixes::parse("# titles\nHr\n\nNo #NUMERIC_ONLY#\r\n", "own");
  check_tokens({.prefixes = own},
               {{"Hr. X, Mr. Y. Z", "Hr. X , Mr . Y . Z"}, {"No. 5, No. Six", "No. 5 , No . Six"}});
  // Moses' lists have phrases and words with a blank behind them, which match nothing.
  const NonbreakingPrefixes odd =
      NonbreakingPrefixes::parse("Hr\nspol. s r. o\nNr \nNo  #NUMERIC_ONLY#\n", "odd");
  check_tokens({.prefixes = odd}, {{"Hr. X spol. s r. o. Y", "Hr. X spol. s r. o . Y"},
                                   {"Nr. X No. 5 x", "Nr . X No . 5 x"}});
  for (const char* none : {"", "# only\n", "a b c\nd e\n"}) {
    CHECK(test::refuses(ErrorKind::kBadInput,
                        "own: expected a word a line, and perhaps #NUMERIC_ONLY#, got no such line",
                        [&] { NonbreakingPrefixes::parse(none, "own"); }));
  }
}

TEST_CASE("moses: text out of tokens") {
  const std::vector<TokenCase> english = {
      {"", ""},
      {"Hello, world!", "Hello , world !"},
      {"It's 5,300 dollars.", "It &apos;s 5,300 dollars ."},
      {"(a) [b] {c}", "( a ) &#91; b &#93; { c }"},
      {"\"yes\", he said, \"no\".", "&quot; yes &quot; , he said , &quot; no &quot; ."},
      {"a-b", "a @-@ b"},
      {"the dogs' house", "the dogs &apos; house"},
      {"a 'quote' b", "a &apos; quote &apos; b"},
      {"$5 is 4\u20AC", "$ 5 is 4\u20AC"},
      {"wait... what?!", "wait ... what ? !"}};
  for (const TokenCase& c : english) CHECK(moses_detokenized(c.tokens) == c.text);
  CHECK(moses_detokenized("&apos; a &apos; b") == "'a' b");
  CHECK(moses_detokenized("a &amp; b", {.unescape = false}) == "a &amp; b");
}

}  // namespace
}  // namespace keel::text
