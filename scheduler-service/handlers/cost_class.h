// How much work a request may cause, by its form alone. Every class has its own places (admission.h), so that requests
// that plan for a minute never make one wait that takes a millisecond. Pure, thread-safe.
#pragma once

#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::sched {

enum class CostClass { kOperator, kCheap, kExpensive };  // in the order in which they are served

inline constexpr int kCostClasses = 3;

const char* NameOf(CostClass cost);

// kCheap or kExpensive: a request is expensive if its planner searches until its budget ends, if it asks for more than
// the default budget, or if it is large.
CostClass CostClassOf(const scheduler::v1::PlanRequest& in);
CostClass CostClassOf(const scheduler::v1::ParetoRequest& in);
CostClass CostClassOf(const scheduler::v1::ProvisionRequest& in);
CostClass CostClassOf(const scheduler::v1::EvaluateRequest& in);
CostClass CostClassOf(const scheduler::v1::SimulateRequest& in);
CostClass CostClassOf(const scheduler::v1::ProfileRequest& in);

}  // namespace medley::sched
