// The jobs of the chaos tests: models, and plans between which they change.
#pragma once

#include <vector>

#include "tests/integration/worker/job_harness.h"

namespace medley::worker {

JobOptions WithTables();  // embedding rows on parameter servers
// fc1 fc2 fc_out loss, without tables; wide, because steps of a small model are over before anything can happen.
JobOptions WithoutTables();
JobOptions Exported();  // a model that was exported from PyTorch

// For WithTables. All plans are synchronous, so their losses are those of OneProcess, but for what adding in another
// order changes: a relative difference of up to 6e-7 in 1,500 steps.
inline constexpr double kSameLosses = 1e-5;
JobShape OneProcess();
std::vector<JobShape> Synchronous();
std::vector<JobShape> WithoutUndo();  // where survivors have applied different steps, all return to the checkpoint
// For WithoutTables.
std::vector<JobShape> Asynchronous();
std::vector<JobShape> Differing();    // replicas train on their own and average after some steps
std::vector<JobShape> Placed();       // on devices of their own, in other places and orders, and as stages
std::vector<JobShape> Overlapping();  // reductions that go on during the next step, in small buckets, and plans without
// For Exported.
std::vector<JobShape> OfExported();

}  // namespace medley::worker
