#include "cli/run/hopeless.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace medley::cli {
namespace {

constexpr std::array<std::string_view, 4> kAtOnce = {"InvalidSpec", "InvalidModel", "PoolNotFound", "UnknownPlanner"};
constexpr std::array<std::string_view, 2> kIfItStays = {"Infeasible", "PoolUnpriced"};

template <size_t N>
bool Contains(const std::array<std::string_view, N>& reasons, std::string_view reason) {
  return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
}

}  // namespace

std::string HopelessWatch::Look(const Snapshot& view, double seconds) {
  if (view.plan || view.complete || view.failed) {
    reason_.clear();
    return "";
  }
  if (Contains(kAtOnce, view.refusal)) return view.problem;
  if (!Contains(kIfItStays, view.refusal)) {
    reason_.clear();
    return "";
  }
  if (reason_ != view.refusal) {
    reason_ = view.refusal;
    since_ = seconds;
  }
  return seconds - since_ >= kPatience ? view.problem : "";
}

}  // namespace medley::cli
