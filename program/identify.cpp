// keel identify: which norm made y of x.
#include "frontend/identify/identify.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "backends/backends.h"
#include "program/common.h"
#include "program/subcommand.h"

namespace keel::cli {
namespace {

using identify::Answer;
using identify::Candidate;
using Listed = nlohmann::ordered_json;

constexpr std::size_t kMostShown = 6;

std::string of_gradient(const Candidate& c) {
  std::string text;
  if (!c.gradient().empty()) {
    text = "; dx: " + c.gradient();
  } else if (!c.dx.empty()) {
    const auto nearest =
        std::ranges::min_element(c.dx, {}, &std::pair<std::string, double>::second);
    text = fmt::format(
        "; dx is not this norm's gradient (nearest: {}, {:.3g} bounds off; exact: {:.3g})",
        nearest->first, nearest->second, c.dx.front().second);
  }
  if (c.dgain.value_or(0) > 1) {
    text += fmt::format("; dgain is not the sum of dy xhat ({:.3g} bounds off)", *c.dgain);
  }
  return text;
}

std::string candidate_line(const Candidate& c) {
  return fmt::format("{}: y within {:.3g} bounds{}{}\n", c.text(), c.y,
                     c.has_general_bounds ? "" : " that keel promises", of_gradient(c));
}

std::string answer_text(const Answer& answer) {
  std::string text;
  if (answer.matches.empty()) {
    text += answer.nearest.empty() ? "no norm that is known takes arrays of these shapes\n"
                                   : "no norm that is known; the nearest:\n";
  }
  const auto& shown = answer.matches.empty() ? answer.nearest : answer.matches;
  for (std::size_t i = 0; i < std::min(shown.size(), kMostShown); ++i)
    text += candidate_line(shown[i]);
  if (shown.size() > kMostShown) {
    text += fmt::format("... and {} more\n", shown.size() - kMostShown);
  }
  for (const std::string& note : answer.notes) text += note + "\n";
  return text;
}

// JSON has no infinity.
Listed or_null(double value) { return std::isfinite(value) ? Listed(value) : Listed(nullptr); }

Listed listed(const Candidate& c) {
  Listed options = Listed::object(), dx = Listed::object();
  for (const auto& [name, value] : c.options()) options[name] = value;
  for (const auto& [way, distance] : c.dx) dx[way] = or_null(distance);
  Listed json{{"norm", c.norm()},
              {"options", options},
              {"y", or_null(c.y)},
              {"bounds", c.has_general_bounds ? "any kernel" : "keel's promise"},
              {"gradient", c.gradient()},
              {"dx", dx}};
  if (c.dgain) json["dgain"] = or_null(*c.dgain);
  return json;
}

Listed listed(const std::vector<Candidate>& candidates) {
  Listed list = Listed::array();
  for (const Candidate& c : candidates) list.push_back(listed(c));
  return list;
}

}  // namespace

int run_identify(const FileArgs& args) {
  const identify::Given given = identify::given_of(io::read_npz(args.path), args.path);
  const auto reference = keel::make_backend("reference");
  const Answer answer = identify::identify(*reference, given);
  if (args.json) {
    print_json({{"known", !answer.matches.empty()},
                {"fits", answer.fits()},
                {"matches", listed(answer.matches)},
                {"nearest", listed(answer.nearest)},
                {"notes", answer.notes}});
  } else {
    print(answer_text(answer));
  }
  return answer.fits() ? 0 : int(ErrorKind::kCheckFailed);
}

void add_identify(Command command) {
  CLI::App* app = command.app.add_subcommand("identify", "name the norm that made y from x");
  auto args = std::make_shared<FileArgs>();
  app->add_option("file", args->path, "an .npz file with x and y")->required();
  app->add_flag("--json", args->json, "print JSON");
  app->footer(
      "arrays, in f4 or f8:\n"
      "  x, y        input and result of the norm, of one shape; (n, c, h, w): "
      "images,\n"
      "              any other rank: tokens, features last\n"
      "  gain, bias  as the program holds them; an offset of 1 is found\n"
      "  dy, dx      gradients of y and x;  dgain: of the gain, which is 1 if not given\n"
      "  before.STATE, after.STATE\n"
      "              running statistics around the step: running_mean, running_var, running_std,\n"
      "              psi2, nu, x2, v, gz, step\n"
      "\n"
      "exit code: 0 where the norm is named and the gradients that were given are its own;\n"
      "           1 where no norm fits, or a gradient is not that of the norm\n"
      "\n"
      "examples:\n"
      "  keel identify case.npz\n"
      "  keel identify case.npz --json");
  app->callback([args, command] { command.code = run_identify(*args); });
}

}  // namespace keel::cli
