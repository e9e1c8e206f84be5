// Placements of the norms of a Transformer: in its residual branches and around them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace keel::nn {

enum class NormPlace {
  kPre,
  kPost,
  kPeri,
  kSub,
  kHybrid,
  kOlmo,
  kLns,
  kDeepNorm,
  kReZero,
  kScaledPost,
  kSimple,
  kNgpt,
};

// The facts about a placement. In a formula x is the input of a branch, F its sublayer (attention
// or feed-forward), and S the number of branches of the stack of layers. The norms of a branch are
// called as in the formula: "attention/norm", "attention/out_norm".
struct PlacementFacts {
  std::string_view name, formula;
  bool final_norm;  // whether a norm follows the last layer
  std::string_view help, source;
};

// In the order of NormPlace.
inline constexpr auto kPlacements = std::to_array<PlacementFacts>({
    {"pre", "x + F(norm(x))", true, "x itself is not normed on its way through the layers",
     "Xiong et al. 2020, arXiv 2002.04745"},
    {"post", "norm(x + F(x))", false, "the placement of the first Transformer",
     "Vaswani et al. 2017, arXiv 1706.03762"},
    {"peri", "x + out_norm(F(norm(x)))", true, "the norm of the embeddings is left out",
     "Kim et al. 2025, arXiv 2502.02732"},
    {"sub", "x + F(norm(x))", true,
     "F has `inner_norm` before its last product, after the joined heads or the activation; the "
     "authors' initial weights are left out",
     "Wang et al. 2022, arXiv 2210.06423"},
    {"hybrid", "attention: x + F(x); feed-forward: y + F(y), y = norm(x)", true,
     "attention has `q/norm`, `k/norm` and `v/norm` after its projections",
     "Zhuo et al. 2025, arXiv 2503.04598"},
    {"olmo", "x + norm(F(x))", true, "the norms of q and k in OLMo 2 are left out",
     "OLMo team 2024, arXiv 2501.00656"},
    {"lns", "x + F(norm(x) / sqrt(l))", true, "l = 1, 2, ... is the number of the layer",
     "Sun et al. 2025, arXiv 2502.05795"},
    {"deepnorm", "norm(a x + F(x))", false,
     "a = S^(1/4), and the initial weights of v, out and the feed-forward layer are multiplied by "
     "(4 S)^(-1/4); an encoder of N layers before M decoder layers has a = 0.81 r and 0.87 / r, "
     "r = (N^4 M)^(1/16)",
     "Wang et al. 2022, arXiv 2203.00555"},
    {"rezero", "x + scale F(x)", false, "no norms; `scale` is one learned number, at first 0",
     "Bachlechner et al. 2020, arXiv 2003.04887"},
    {"scaled_post", "out_norm(S x + F(norm(x)))", false,
     "its authors call it Keel; it has nothing to do with this program",
     "Chen & Wei 2026, arXiv 2601.19895"},
    {"simple", "x + F(x)", true,
     "SimpleNorm: every linear map of F is followed by a norm, such as `q/norm` or `1/norm`",
     "Chen et al. 2026, arXiv 2602.01212"},
    {"ngpt", "n(n(x) + a (n(F(x)) - n(x)))", false,
     "n gives a row the length 1, instead of the norm; a = 0.05 sqrt(width) abs(alpha), and "
     "`alpha`, a learned number for each feature, is 1 / sqrt(width) at first. The llama of "
     "char_lm has all of nGPT, other networks only this sum",
     "Loshchilov et al. 2024, arXiv 2410.01131"},
});
static_assert(kPlacements.size() == std::size_t(NormPlace::kNgpt) + 1);

constexpr auto choice_words(NormPlace) {
  std::array<std::string_view, kPlacements.size()> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = kPlacements[i].name;
  return words;
}

constexpr bool has_final_norm(NormPlace place) {
  return kPlacements[std::size_t(place)].final_norm;
}

// Whether the placement changes attention itself, and not only what comes before and after it.
constexpr bool changes_attention(NormPlace place) {
  return place == NormPlace::kSub || place == NormPlace::kHybrid || place == NormPlace::kDeepNorm ||
         place == NormPlace::kSimple;
}

// The meaning of a task's option that is a placement.
inline constexpr std::string_view kPlaceAbout =
    "placement of the norms: before a residual branch (pre), after the sum (post), or one of the "
    "later ones";

// The position of a layer in its stack, on which some placements depend.
struct StackDepth {
  std::int64_t layer = 0;           // the number of the layer, from 1 on
  std::int64_t layers = 0;          // of the stack
  std::int64_t branches = 2;        // of a layer: 3 in a decoder that attends to an encoder
  std::int64_t decoder_layers = 0;  // those that attend to this stack
};

struct PlacementFactors {
  double residual = 1;  // of x in a branch's sum
  double norm = 1;      // of the norm before a branch
  double weights = 1;   // of a branch's initial weights, except those of q and k
};
// Throws Error{kUsage} if the placement depends on a number of `depth` that is 0.
PlacementFactors placement_factors(NormPlace place, const StackDepth& depth);

}  // namespace keel::nn
