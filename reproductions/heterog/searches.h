// Searches of strategies that HeteroG is compared with, on as many simulations as the service's own.
#pragma once

#include "scheduler-service/graph/search.h"

namespace medley::reproductions::heterog {

// Draws all actions evenly; every second draw keeps those of the best baseline but for one run of groups.
void SearchRandomly(const sched::GraphQuestion& q);

// Metropolis: a change of one group is kept if it shortens the step, and otherwise with the probability
// exp(-20 x what it lengthens the step / the seconds of the first) (FlexFlow, Jia and others 2018, section 6.2).
void SearchByMetropolis(const sched::GraphQuestion& q);

// The cross-entropy method: each group draws its action from a distribution of its own, which moves to the best tenth
// of the draws (Post, Gao and others 2018, without its proximal policy steps in between).
void SearchByCrossEntropy(const sched::GraphQuestion& q);

}  // namespace medley::reproductions::heterog
