// How good a plan is: seconds and USD. Two ways to know it are the closed form and the simulator; a third is to run the
// plan. A planner is given a judge and calls no other, so all of its candidates are compared in the same way.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>

#include "common/model/forward.h"
#include "scheduler-service/planning/question.h"

namespace medley::sched {

// Not thread-safe: one for each search. The question must outlive it.
class Judge {
 public:
  explicit Judge(const Question& question) : question_(question) {}
  virtual ~Judge() = default;
  virtual std::string_view name() const = 0;  // "closed form", "simulator", "measurement"

  // What a step of the plan takes in steady state, and what the plan costs, whatever the bounds of the request. Errors:
  // those of the implementation for a plan that it cannot judge; Cancelled.
  absl::StatusOr<Figures> Of(const model::ExecutionPlan& plan);
  // The same of a plan that keeps all bounds of the request. Errors: those of Of; FailedPrecondition naming a bound
  // that the plan breaks.
  absl::StatusOr<Figures> Within(const model::ExecutionPlan& plan);
  absl::StatusOr<double> SecondsWithin(const model::ExecutionPlan& plan);

  const Question& question() const { return question_; }
  int64_t judged() const { return judged_; }  // plans, without those that broke a bound before that took any time

 private:
  virtual absl::StatusOr<Figures> Judged(const model::ExecutionPlan& plan) = 0;

  const Question& question_;
  int64_t judged_ = 0;
};

// By scheduler-service/cost, for a question about units. Errors: those of StagesOf.
std::unique_ptr<Judge> MakeClosedForm(const Question& question);

// By the seconds of a step of the plan's program in simulated time (scheduler-service/simulate). Errors: of devices,
// those of DeviceSimulator::Seconds; of units, FailedPrecondition for a plan that is too large to simulate it beside
// others, or that cannot be compiled.
std::unique_ptr<Judge> MakeSimulator(const Question& question, std::stop_token stop);

// By the seconds that `measure` says, for plans on devices that the simulator accepts. Errors: those of both.
using Measure = std::function<absl::StatusOr<double>(const model::ExecutionPlan& plan)>;
std::unique_ptr<Judge> MakeMeasurement(const Question& question, Measure measure, std::stop_token stop);

// The judge that planners of such a question are given: of units the closed form, of devices the simulator.
std::unique_ptr<Judge> MakeUsualJudge(const Question& question, std::stop_token stop);

// Samples/s of the plan in simulated time, with the times of the request's model; 0 for a plan that is too large to
// simulate it beside others, or that cannot be compiled. Pure.
double SimulatedThroughput(const model::ExecutionPlan& plan, const model::PlanRequest& request, std::stop_token stop);

}  // namespace medley::sched
