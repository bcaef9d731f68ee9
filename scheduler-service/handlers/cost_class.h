// How much work a request may cause, by its form alone. Every class has its own places (admission.h), so that requests
// that plan for a minute never make one wait that takes a millisecond. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::sched {

enum class CostClass { kOperator, kTiny, kCheap, kExpensive };  // in the order in which they are served

inline constexpr int kCostClasses = 4;

const char* NameOf(CostClass cost);

struct Cost {
  CostClass cost = CostClass::kExpensive;
  int64_t weight = 0;  // within the class, where light requests are served first: layers times types, and KiB
  bool operator==(const Cost&) const = default;
};

// kTiny, kCheap or kExpensive: a request is expensive if its planner searches until its budget ends, if it asks for
// more than the default budget, or if it is large; of the others, those are tiny that are small in every respect.
Cost CostOf(const scheduler::v1::PlanRequest& in);
Cost CostOf(const scheduler::v1::ParetoRequest& in);
Cost CostOf(const scheduler::v1::ProvisionRequest& in);
Cost CostOf(const scheduler::v1::EvaluateRequest& in);
Cost CostOf(const scheduler::v1::SimulateRequest& in);
Cost CostOf(const scheduler::v1::ProfileRequest& in);

// For reading a text or message of `bytes`: kTiny or kCheap.
Cost CostOfReading(size_t bytes);

}  // namespace medley::sched
