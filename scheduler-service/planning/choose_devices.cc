#include "scheduler-service/planning/choose_devices.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/devices/device_choices.h"
#include "scheduler-service/devices/why_none.h"
#include "scheduler-service/planning/candidate.h"

namespace medley::sched {
namespace {

constexpr double kProvenNoBetter = 1 - 1e-9;  // of the best value
constexpr int kMostExplained = 24;            // plans without bounds, from which reasons are computed
constexpr size_t kFewChoices = 64;            // all of them are worth planning on
constexpr double kPromising = 1.25;           // times the least estimate; with more choices, others are left out
constexpr double kSearchShare = 0.85;         // of the time; the rest is for reasons
constexpr double kLeastShare = 0.25;          // of the time that is left, for a choice of devices
constexpr double kMostSeconds = 1e6;

bool IsAboutTime(model::Objective objective) {
  return objective == model::Objective::kStepTime || objective == model::Objective::kTime;
}

// "2 of 4 h100, 3 of 8 cpu".
std::string Counted(const DeviceProblem& problem, const model::ExecutionPlan& plan) {
  std::map<std::string, std::pair<int, int>> pools;  // used, there
  for (int d = 0; d < problem.devices(); ++d) ++pools[problem.device(d).pool].second;
  for (const model::Device& device : plan.devices) ++pools[device.pool].first;
  std::string text;
  for (const auto& [pool, number] : pools) {
    if (number.first == 0) continue;
    text += fmt::format("{}{} of {} {}", text.empty() ? "" : ", ", number.first, number.second, pool);
  }
  return text;
}

class DeviceSearch {
 public:
  DeviceSearch(const DeviceProblem& problem, const model::PlanRequest& request, const Planner& planner,
               const Budget& limits)
      : problem_(problem),
        request_(request),
        planner_(planner),
        limits_(limits),
        kinds_(KindsOf(problem)),
        samples_(request.training.TotalSamples()) {}

  absl::StatusOr<Chosen> Run() {
    const DeviceChoices choices = ChoicesOf(problem_, kinds_, request_.constraints, request_.objective);
    const Budget search = limits_.QuietWithin(kSearchShare * TimeLeft());
    bool cut = false;
    for (size_t i = 0; i < choices.choices.size(); ++i) {
      const DeviceChoice& choice = choices.choices[i];
      if (IsProvenNoBetter(choice)) {
        ++skipped_;
        continue;
      }
      cut = search.Spent() || planned_ >= kMostPlanned || IsUnpromising(choices.choices, i);
      if (cut) break;
      const auto left = static_cast<double>(choices.choices.size() - i);
      const double seconds = std::max(kLeastShare, 1 / left) * std::min(search.RemainingSeconds(), kMostSeconds);
      MEDLEY_RETURN_IF_ERROR(PlanOn(choice, request_.constraints, search.QuietWithin(seconds)));
    }
    if (!best_) return WithoutPlan();
    Finish(choices, cut, search.Spent());
    return Chosen{*std::move(best_), figures_, planned_, {}};
  }

 private:
  double TimeLeft() const { return std::min(limits_.RemainingSeconds(), kMostSeconds); }

  // What the objective is at least, for plans that use all devices of the choice.
  double LeastValue(const DeviceChoice& choice) const {
    switch (request_.objective) {
      case model::Objective::kCostPerHour:
        return choice.usd_per_hour;
      case model::Objective::kCost:
        return choice.least_seconds * samples_ / problem_.samples() / 3600 * choice.usd_per_hour;
      case model::Objective::kStepTime:
      case model::Objective::kTime:
        break;
    }
    return choice.least_seconds;
  }

  bool IsProvenNoBetter(const DeviceChoice& choice) const {
    return best_ && LeastValue(choice) >= ValueOf(figures_, request_.objective) * kProvenNoBetter;
  }

  // For many choices: an estimate far from the least, after some that are nearer.
  bool IsUnpromising(const std::vector<DeviceChoice>& choices, size_t i) const {
    if (!best_ || planned_ < static_cast<int>(kFewChoices) || choices.size() <= kFewChoices) return false;
    const auto value = [&](const DeviceChoice& choice) {
      switch (request_.objective) {
        case model::Objective::kCostPerHour:
          return choice.usd_per_hour;
        case model::Objective::kCost:
          return choice.estimate * choice.usd_per_hour;
        case model::Objective::kStepTime:
        case model::Objective::kTime:
          break;
      }
      return choice.estimate;
    };
    return value(choices[i]) > kPromising * value(choices.front());
  }

  absl::StatusOr<Question> QuestionOn(const DeviceChoice& choice, const model::Constraints& constraints) const {
    model::PlanRequest request = request_;
    request.constraints = constraints;
    std::vector<model::Device> devices;
    for (const int d : DevicesOf(kinds_, choice)) devices.push_back(problem_.device(d));
    request.cluster = model::ClusterOf(request_.cluster, std::move(devices));
    return Question::Compile(std::move(request));
  }

  // Plans on a choice, and keeps the plan if it is the best so far. Errors: Cancelled, and those of the planner unless
  // it cannot handle this choice.
  absl::Status PlanOn(const DeviceChoice& choice, const model::Constraints& constraints, const Budget& limits) {
    MEDLEY_ASSIGN_OR_RETURN(const Question question, QuestionOn(choice, constraints));
    ++planned_;
    auto solution = planner_.Solve(question, request_.planner.seed, limits);
    if (absl::IsInvalidArgument(solution.status())) {
      refused_ = solution.status();
      return absl::OkStatus();
    }
    MEDLEY_RETURN_IF_ERROR(solution.status());
    handled_ = true;
    judged_ += solution->judged;
    complete_ = complete_ && solution->complete;
    if (!solution->plan) {
      if (!solution->notes.empty()) why_ = solution->notes.back();
      return absl::OkStatus();
    }
    const Figures figures = FiguresOf(problem_, *solution->plan, solution->figures.seconds);
    found_.push_back(figures);
    if (IsAboutTime(request_.objective)) {
      const double proven = std::max(choice.least_seconds, solution->lower_bound);
      if (proven > 0) bounds_[choice.counts] = proven;
    }
    if (!KeepsAll(request_.constraints, figures)) return absl::OkStatus();
    if (best_ && !IsBetter(figures, figures_, request_.objective)) return absl::OkStatus();
    figures_ = figures;
    best_ = *std::move(solution);
    if (best_->planner.empty()) best_->planner = planner_.name();
    limits_.Report(*best_->plan, figures_);
    return absl::OkStatus();
  }

  void Finish(const DeviceChoices& choices, bool cut, bool spent) {
    Candidate& solution = *best_;
    solution.judged = judged_;
    solution.complete = complete_ && !(cut && spent);
    solution.lower_bound = 0;
    const bool all = choices.all && !cut && complete_ && kinds_.exact;
    if (all && IsAboutTime(request_.objective)) {
      double least = kForever;
      for (const DeviceChoice& choice : choices.choices) {
        const auto proven = bounds_.find(choice.counts);
        least = std::min(least, proven == bounds_.end() ? choice.least_seconds : proven->second);
      }
      solution.lower_bound = std::min(least, solution.figures.seconds);
    }
    solution.explanation += fmt::format("the plan uses {}", Counted(problem_, *solution.plan));
    if (figures_.usd_per_hour > 0) {
      solution.explanation += fmt::format(", for {} USD/h", base::FormatDecimal(figures_.usd_per_hour, 6));
    }
    solution.explanation += "\n";
    const size_t others = choices.choices.size() - static_cast<size_t>(planned_ + skipped_);
    std::string note = fmt::format("of {} choices of devices that may keep the bounds, planner {} planned on {}",
                                   choices.choices.size(), planner_.name(), planned_);
    if (skipped_ > 0) note += fmt::format("; {} are proven to be no better", skipped_);
    if (others > 0) {
      note += fmt::format("; {} less promising ones were left out, because {}", others,
                          spent ? "the time budget ended" : "they are too many");
    }
    if (!choices.all) note += "; there are more, because only some numbers of each kind of device were compared";
    if (!kinds_.exact) note += "; devices of a pool counted as equal, in the order given, although their links differ";
    solution.notes.push_back(std::move(note));
  }

  // Plans without the bounds show what stands in the way.
  absl::StatusOr<Chosen> WithoutPlan() {
    const int tried = planned_;
    found_.clear();
    for (const DeviceChoice& choice : Typical()) {
      if (limits_.Spent() && !found_.empty()) break;
      MEDLEY_RETURN_IF_ERROR(PlanOn(choice, model::Constraints{}, limits_.QuietWithin(kLeastShare * TimeLeft())));
    }
    if (best_) {  // a planner that does not see the bounds has kept them
      best_->judged = judged_;
      best_->notes.push_back("the plan was found among plans that were made without the bounds");
      return Chosen{*std::move(best_), figures_, planned_, {}};
    }
    if (!handled_) return refused_;
    Chosen none;
    none.choices = tried;
    none.candidate.complete = complete_;
    none.candidate.judged = judged_;
    if (found_.empty()) {
      none.reasons.push_back({"memory", "", 0, 0, why_.empty() ? "no plan fits on these devices" : why_});
      return none;
    }
    none.reasons = WhyNone(request_.constraints, found_);
    return none;
  }

  // Choices without bounds that differ as much as they can: the fastest, the cheapest and those between.
  std::vector<DeviceChoice> Typical() const {
    std::map<std::vector<int>, DeviceChoice> typical;
    using enum model::Objective;
    for (const model::Objective objective : {kStepTime, kCostPerHour, kCost}) {
      const auto choices = ChoicesOf(problem_, kinds_, model::Constraints{}, objective).choices;
      constexpr size_t kOfEach = kMostExplained / 3;
      const size_t step = std::max<size_t>(1, choices.size() / kOfEach);
      for (size_t i = 0; i < choices.size() && i < kOfEach / 2; ++i) typical[choices[i].counts] = choices[i];
      for (size_t i = 0; i < choices.size(); i += 2 * step) typical[choices[i].counts] = choices[i];
    }
    std::vector<DeviceChoice> out;
    for (auto& [counts, choice] : typical) out.push_back(std::move(choice));
    return out;
  }

  const DeviceProblem& problem_;
  const model::PlanRequest& request_;
  const Planner& planner_;
  const Budget& limits_;
  const DeviceKinds kinds_;
  const double samples_;
  std::optional<Candidate> best_;
  Figures figures_;
  std::vector<Figures> found_;                 // of all plans
  std::map<std::vector<int>, double> bounds_;  // proven seconds, by counts
  int planned_ = 0, skipped_ = 0;
  int64_t judged_ = 0;
  bool complete_ = true, handled_ = false;
  std::string why_;
  absl::Status refused_;
};

// Bounds of units or money that all devices together break, so that the question is which of them to use.
bool MustChoose(const DeviceProblem& problem, const model::PlanRequest& request) {
  const model::Constraints& c = request.constraints;
  if (!IsAboutTime(request.objective)) return true;
  if (c.max_units > 0 && problem.devices() > c.max_units) return true;
  double usd_per_hour = 0;
  for (int d = 0; d < problem.devices(); ++d) usd_per_hour += problem.UsdPerHour(d);
  return c.max_cost_per_hour > 0 && usd_per_hour > c.max_cost_per_hour * (1 + 1e-9);
}

// The bounds of time: the fastest plan of all devices is the best that they can have.
bool BreaksOnlyTime(const model::Constraints& constraints, const Figures& figures) {
  model::Constraints others = constraints;
  others.min_throughput = others.deadline_seconds = 0;
  return KeepsAll(others, figures);
}

}  // namespace

absl::StatusOr<Chosen> ChooseDevices(const Question& question, const model::PlanRequest& request,
                                     const Planner& planner, const Budget& limits) {
  const DeviceProblem& problem = question.devices();
  if (MustChoose(problem, request)) return DeviceSearch(problem, request, planner, limits).Run();
  Chosen chosen;
  MEDLEY_ASSIGN_OR_RETURN(chosen.candidate, planner.Solve(question, request.planner.seed, limits));
  if (!chosen.candidate.plan) return chosen;
  chosen.figures = FiguresOf(problem, *chosen.candidate.plan, chosen.candidate.figures.seconds);
  if (KeepsAll(request.constraints, chosen.figures)) return chosen;
  if (BreaksOnlyTime(request.constraints, chosen.figures)) {
    chosen.reasons = WhyNone(request.constraints, {chosen.figures});
    chosen.candidate.plan.reset();
    return chosen;
  }
  return DeviceSearch(problem, request, planner, limits).Run();
}

}  // namespace medley::sched
