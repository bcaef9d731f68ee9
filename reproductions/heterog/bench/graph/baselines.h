// Copies of the whole model, which need no search.
#pragma once

#include "scheduler-service/graph/search.h"

namespace medley::reproductions::heterog {

// One baseline (0 to 3, as sched::Replicas) with its best size of buckets; kForever: it does not fit.
double BaselineSeconds(const sched::GraphQuestion& q, int how, sched::OrderBy order);

// The fastest copies with balanced shares, in any order and size of buckets: at most 32 simulations.
double BalancedCopies(const sched::GraphQuestion& q);

}  // namespace medley::reproductions::heterog
