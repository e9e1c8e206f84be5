#include "frontend/text/nonbreaking_prefixes.h"

#include <algorithm>
#include <array>

#include "frontend/text/lines.h"
#include "frontend/text/text_file.h"
#include "frontend/text/unicode.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

constexpr std::int64_t kMaxPrefixBytes = 1 << 22;
constexpr std::string_view kOnlyBeforeNumbers = "#NUMERIC_ONLY#";

constexpr std::string_view kCapitals = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z";
// Titles, ranks, ways of address and months.
constexpr std::string_view kEnglish =
    "Adj Adm Adv Asst Bart Bldg Brig Bros Capt Cmdr Col Comdr Con Corp Cpl DR Dr Drs Ens Gen Gov "
    "Hon Hosp Hr Insp Lt MM MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Op Ord Pfc Ph Prof Pvt "
    "Rep Reps Res Rev Rs Rt Sen Sens Sfc Sgt Sr St Supt Surg e.g i.e rev v vs Nos Nr "
    "Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec";
constexpr std::string_view kEnglishBeforeNumbers = "Art No pp";

constexpr std::string_view kSmall = "a b c d e f g h i j k l m n o p q r s t u v w x y z";
constexpr std::string_view kRoman =
    "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX "
    "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx";
constexpr std::string_view kGerman =
    "Adj Adm Adv Asst Bart Bldg Brig Bros Capt Cmdr Col Comdr Con Corp Cpl DR Dr Ens Gen Gov Hon "
    "Hosp Insp Lt MM MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Op Ord Pfc Ph Prof Pvt Rep Reps "
    "Res Rev Rt Sen Sens Sfc Sgt Sr St Supt Surg No Nos Art Nr pp v vs "
    "b.A bzgl bzw ca c.-\u00E0-d dergl dgl d.h d.J etc evtl ff ggf g.g.A g.U i.H.v jun k.o m.E "
    "o.\u00E4 "
    "sen sog sogen s.p.a spp u.a u.\u00E4 u.E u.g u.s.w u.U usf usw vgl z.B z.T z.Zt zzt "
    "BSE Buchst Ca Chr Co D.h Dkr I.F Ltd Mio Mrd MwSt SA Std Zt";

// Languages that Moses has a list for, and keel has not.
constexpr std::array<std::string_view, 36> kListsOfMoses = {
    "as", "bn", "ca", "cs", "el", "es", "et", "fi",  "fr",  "ga", "gu",  "hi",
    "hu", "is", "it", "kn", "lt", "lv", "ml", "mni", "mr",  "nl", "or",  "pa",
    "pl", "pt", "ro", "ru", "sk", "sl", "sv", "ta",  "tdt", "te", "yue", "zh"};

}  // namespace

void NonbreakingPrefixes::add(std::string_view words) {
  for (std::string_view word : words_of(words)) always_.emplace(word);
}

NonbreakingPrefixes NonbreakingPrefixes::of_language(std::string_view language) {
  NonbreakingPrefixes result;
  result.add(kCapitals);
  if (language == "de") {
    for (std::string_view words : {kSmall, kRoman, kGerman}) result.add(words);
    for (int day = 1; day < 100; ++day) result.add(std::to_string(day));  // "am 3. Mai"
  } else {
    result.add(kEnglish);
    for (std::string_view word : words_of(kEnglishBeforeNumbers)) {
      result.before_numbers_.emplace(word);
    }
  }
  return result;
}

NonbreakingPrefixes NonbreakingPrefixes::load(const std::filesystem::path& path) {
  return parse(read_text(path, kMaxPrefixBytes), path.string());
}

NonbreakingPrefixes NonbreakingPrefixes::parse(std::string_view content, const std::string& file) {
  NonbreakingPrefixes result;
  Lines lines(content);
  bool any = false;
  while (const std::optional<Line> line = lines.next()) {
    std::string_view word = line->text;
    if (word.empty() || word.starts_with('#')) continue;
    const std::size_t mark = word.rfind(kOnlyBeforeNumbers);
    const bool restricted =
        mark != std::string_view::npos && mark > 0 && is_space(char32_t(word[mark - 1]));
    if (restricted) word = word.substr(0, mark - 1);
    any |= words_of(word).size() == 1;
    (restricted ? result.before_numbers_ : result.always_).emplace(word);
  }
  check(any, ErrorKind::kBadInput,
        "[prefixes] {}: expected a word a line, and perhaps {}, got no such line", file,
        kOnlyBeforeNumbers);
  return result;
}

bool NonbreakingPrefixes::lacks(std::string_view language) {
  return std::ranges::find(kListsOfMoses, language) != kListsOfMoses.end();
}

}  // namespace keel::text
