// Fencing of operators: when two operators both believe that they lead, the one with the larger term is right.
//
// A leader's term is its Lease's leaseTransitions; without leader election it is 0. A receiver remembers the largest
// term that it has served and refuses smaller ones. The term is the fencing token of Kleppmann 2016, "How to do
// distributed locking". Pure, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>

namespace medley::model {

// The error for a request of leader term `term` when term `seen` > `term` has been served: FailedPrecondition.
absl::Status StaleTerm(int64_t term, int64_t seen);
// The term `seen` of such an error, also after RPC; nullopt for any other status.
std::optional<int64_t> NewerTerm(const absl::Status& status);

}  // namespace medley::model
