// Fencing: which of two operators that both believe to lead is the newer one.
//
// A leader's term is its Lease's leaseTransitions; without leader election it is 0. Receivers keep the newest term that
// they have served and refuse older ones (Kleppmann 2016, "How to do distributed locking": the fencing token).
// Pure, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>

namespace medley::model {

// The refusal of a request of `term` by one who has served `seen` > term: FailedPrecondition.
absl::Status StaleTerm(int64_t term, int64_t seen);
// `seen` of such a refusal, also after it has crossed RPC; nothing for any other status.
std::optional<int64_t> NewerTerm(const absl::Status& status);

}  // namespace medley::model
