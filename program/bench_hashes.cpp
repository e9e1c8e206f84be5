// keel bench norms --hashes
#include <map>
#include <nlohmann/json.hpp>

#include "bench/norm_accuracy.h"
#include "frontend/io/input_file.h"
#include "frontend/text/lines.h"
#include "program/common.h"
#include "program/processor.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const bench::NormHash& h) { return fmt::format("{:016x} {}", h.hash, h.of); }

// The hashes of a file, by norm and case. Lines that begin with '#' are notes.
std::map<std::string, std::string> hashes_in(const std::string& path) {
  const std::string content = io::InputFile(path).read_all();
  std::map<std::string, std::string> hashes;
  text::Lines lines(content);
  while (const auto line = lines.next()) {
    if (line->text.starts_with('#')) continue;
    const std::size_t space = line->text.find(' ');
    check(space == 16, ErrorKind::kBadInput,
          "{}:{}: expected 16 digits, a norm and a case, got '{}'", path, line->number,
          line->text.substr(0, 80));
    hashes.emplace(line->text.substr(space + 1), line->text.substr(0, space));
  }
  return hashes;
}

// Says how many of the hashes a file has, and the first that it has otherwise.
int compare_with(const std::string& path, const std::vector<bench::NormHash>& hashes) {
  const std::map<std::string, std::string> expected = hashes_in(path);
  std::int64_t same = 0, known = 0;
  std::string first;
  for (const bench::NormHash& h : hashes) {
    const auto found = expected.find(h.of);
    if (found == expected.end()) continue;
    ++known;
    const bool agrees = found->second == fmt::format("{:016x}", h.hash);
    same += agrees;
    if (!agrees && first.empty()) {
      first = fmt::format("first difference: {}, {} there\n", line_of(h), found->second);
    }
  }
  check(known > 0, ErrorKind::kBadInput,
        "{}: expected lines of keel bench norms --hashes, got none of these norms", path);
  print(fmt::format("{} of {} hashes agree with {}\n{}", same, known, path, first));
  return same == known ? 0 : 1;
}

}  // namespace

int run_norm_hashes(const NormBenchArgs& args) {
  RunArgs run = args.run;
  check(args.threads.size() <= 1, ErrorKind::kUsage,
        "--threads: expected one number beside --hashes, got {}", args.threads.size());
  if (!args.threads.empty()) run.threads = args.threads.front();
  const auto backend = make_backend(run);
  std::vector<bench::NormHash> hashes;
  for (const std::string& norm : args.norms.empty() ? bench::accuracy_norms() : args.norms) {
    const std::vector<bench::NormHash> more = bench::norm_hashes(*backend, norm);
    hashes.insert(hashes.end(), more.begin(), more.end());
  }
  if (!args.against.empty()) return compare_with(args.against, hashes);
  if (args.run.json) {
    Json rows = Json::array();
    for (const bench::NormHash& h : hashes) {
      rows.push_back({{"of", h.of}, {"hash", fmt::format("{:016x}", h.hash)}});
    }
    print_json(
        {{"processor", processor_text()}, {"backend", backend->description()}, {"hashes", rows}});
    return 0;
  }
  std::string text = fmt::format("# {}\n# {}\n", processor_text(), backend->description());
  for (const bench::NormHash& h : hashes) text += line_of(h) + "\n";
  print(text);
  return 0;
}

}  // namespace keel::cli
