// The results of Moses' tokenizer.perl and detokenizer.perl for lines in languages with rules of
// their own.
#include <vector>

#include "frontend/text/moses_detokenizer.h"
#include "frontend/text/moses_tokenizer.h"
#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

struct LanguageCase {
  const char *language, *given, *expected;
};

TEST_CASE("moses: tokens of every language with rules of its own") {
  const std::vector<LanguageCase> cases = {
      {"fr", "C'est l'eau d'Or ? \u00AB Oui \u00BB : 5 % ; (non !)",
       "C&apos; est l&apos; eau d&apos; Or ? \u00AB Oui \u00BB : 5 % ; ( non ! )"},
      {"it", "L'amico dell'anno: 'un'ora'.",
       "L&apos; amico dell&apos; anno : &apos; un&apos; ora &apos; ."},
      {"ca", "L'home col\u00B7lega: il\u00B7lusi\u00F3 d'avui\u00B7",
       "L&apos; home col\u00B7lega : il\u00B7lusi\u00F3 d&apos; avui\u00B7"},
      {"ga", "D'ith s\u00E9 b'fh\u00E9idir 'bia'.",
       "D&apos; ith s\u00E9 b&apos; fh\u00E9idir &apos; bia &apos; ."},
      {"fi", "USA:n EU:ssa, klo 10:30 H&M:n EU:N x:",
       "USA:n EU:ssa , klo 10 : 30 H &amp; M:n EU : N x :"},
      {"sv", "USA:s S:t a:n: 5:an 5:An", "USA:s S:t a:n : 5:an 5 : An"},
      {"de", "geht's EU:n d'accord", "geht &apos; s EU : n d &apos; accord"},
      {"so", "lo'o 'so'o' a'", "lo&apos;o &apos; so&apos;o &apos; a&apos;"},
      {"tdt", "ne'e 'ida' Sa'E o'", "ne&apos;e &apos; ida &apos; Sa &apos; E o &apos;"},
      {"zh", "\u4F60\u597D\uFF0C\u4E16\u754C\uFF013\u6708\u4E2D\u6587\u3002",
       "\u4F60\u597D \uFF0C \u4E16\u754C \uFF01 3\u6708\u4E2D\u6587 \u3002"},
      {"ja",
       "\u30E6\u30FC\u30ED\uFF08\u20AC\uFF09\u3068\u30C9\u30EB\u3001\u30AB\u30BF\u30AB\u30CA\u3002",
       "\u30E6\u30FC\u30ED \uFF08 \u20AC \uFF09 \u3068\u30C9\u30EB \u3001 \u30AB\u30BF\u30AB\u30CA "
       "\u3002"},
      {"ko", "\uD55C\uAD6D\uC5B4 \uBB38\uC7A5\u3002", "\uD55C\uAD6D\uC5B4 \uBB38\uC7A5 \u3002"},
      {"hi", "\u0939\u093F\u0928\u094D\u0926\u0940 \u0915\u093C\u0932\u092E\u0964",
       "\u0939\u093F\u0928 \u094D \u0926\u0940 \u0915 \u093C \u0932\u092E \u0964"},
      {"th", "\u0E19\u0E49\u0E33", "\u0E19 \u0E49 \u0E33"},
      {"es", "\u00A1Hola! 5\u00AA. \u00BFQu\u00E9?", "\u00A1 Hola ! 5\u00AA . \u00BF Qu\u00E9 ?"},
      {"es", "el n. \u00BA", "el n. \u00BA"},
  };
  for (const LanguageCase& c : cases) {
    CAPTURE(c.language);
    CHECK(MosesTokenizer({.language = c.language})(c.given) == c.expected);
  }
}

TEST_CASE("moses: text out of tokens of every language with rules of its own") {
  const std::vector<LanguageCase> cases = {
      {"fr", "oui ? non ! a : b ; 5 % ( ?! ) 5 \u20AC .", "oui ? non ! a : b ; 5 % (?!) 5 \u20AC."},
      {"fr", "\u00AB oui \u00BB ? . !", "\u00AB oui \u00BB ?. !"},
      {"ga", "d&apos; eau", "d' eau"},
      {"ca", "l&apos; home", "l' home"},
      {"it", "5&apos; eau l&apos; 5 l&apos; eau", "5' eau l' 5 l'eau"},
      {"fi", "44 % : lla EU : N EU : Ssakin EU : ille a : nsakin",
       "44%:lla EU:n EU:ssakin EU: ille a: nsakin"},
      {"sv", "EU : s", "EU: s"},
      {"cs", "3 , 5 a 3 . 14 x , 5 3 ,5", "3,5 a 3.14 x, 5 3 ,5"},
      {"cs", "e - mail je \u2013 li to Je - Li", "e-mail je\u2013li to Je - Li"},
      {"cs", "\u201E ano \u201C a \u201E \u201E ne \u201C \u201C .",
       "\u201Eano\u201C a \u201E\u201Ene\u201C\u201C."},
      {"zh", "\u4F60\u597D \uFF0C \u4E16\u754C \u3002 abc \u4E2D \u6587",
       "\u4F60\u597D \uFF0C \u4E16\u754C\u3002 abc \u4E2D\u6587"},
      {"ja", "\u30AB \u30BF \u30AB \u30CA \u3001 ED \u65E5",
       "\u30AB\u30BF\u30AB\u30CA\u3001 ED \u65E5"},
      {"ko", "\uD55C\uAD6D \uC5B4 \uBB38 \uC7A5", "\uD55C\uAD6D \uC5B4 \uBB38 \uC7A5"},
      {"en", "( &apos;s it &apos;s 5 &apos;s , &apos;tis", "('s it's 5's, 'tis"},
      {"de", "it &apos;s", "it 's"},
      {"pl", "it &apos;s d&apos; eau ?", "it 's d' eau?"},
      {"en", "a ( b  ) c  , d", "a (b ) c , d"},
      {"en", "@-@ a @-@ b @-@ @-@ c", "-a-b-@-@ c"},
      {"en", "\u201C a \u201C \u201D b \u201D `` c ``", "\u201Ca\u201C \u201D b \u201D ``c``"},
      {"es", "\u00BF qu\u00E9 ? \u00A1 s\u00ED !", "\u00BFqu\u00E9? \u00A1s\u00ED!"},
      {"de", "\u201E ja \u201C , sagt er", "\u201Eja\u201C, sagt er"},
  };
  for (const LanguageCase& c : cases) {
    CAPTURE(c.language);
    CHECK(moses_detokenized(c.given, {.language = c.language}) == c.expected);
  }
}

}  // namespace
}  // namespace keel::text
