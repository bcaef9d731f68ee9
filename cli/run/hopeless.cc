#include "cli/run/hopeless.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "operator/api/reasons.h"

namespace medley::cli {
namespace {

constexpr std::array kAtOnce = {ops::Reason::kInvalidSpec, ops::Reason::kInvalidModel, ops::Reason::kUnknownPlanner};
constexpr std::array kIfItStays = {ops::Reason::kInfeasible, ops::Reason::kPoolUnpriced, ops::Reason::kPoolNotFound};

template <size_t N>
bool Contains(const std::array<ops::Reason, N>& reasons, std::string_view reason) {
  return std::any_of(reasons.begin(), reasons.end(), [&](ops::Reason each) { return ToString(each) == reason; });
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
