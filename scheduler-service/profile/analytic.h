// Profiles from datasheets: a roofline estimate of the cost of each layer on a machine without measurements.
//
// For a batch of b samples on one unit, with the work of work.h and the efficiencies of analytic.cc:
//   pass(flops, bytes) = max(flops / (peak * kProductEfficiency), bytes / (bandwidth * kStreamEfficiency))
//   compute(b) = pass(forward) + pass(backward) + pass(update) + rows + scalar operations + launches * launchSeconds
//   sync       = dense: ring allreduce among many units, 2 W / network for W bytes of weights (two units need half);
//                sparse: pull and push of the distinct rows in the batch, including the server's work
//   transfer(b)= 2 * b * bytes per sample that cross the cut behind the layer / network
// The fraction that divides by units is 1 - f(0) / f(b), where f is the cost. Costs per step (kernel launches,
// latencies, weights, allreduce) do not divide; costs proportional to the batch do. As in measured profiles, sync and
// transfer share one fraction, computed for their sum.
// Sparse layers are synchronised by parameter servers, also on GPUs: serverSeconds > 0. Pure.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "common/model/forward.h"
#include "scheduler-service/profile/hardware.h"

namespace medley::sched {

// For each layer, the bytes per sample that cross the cut behind it: the outputs of this and earlier layers that later
// layers use. If no layer has `inputs`, that is the layer's output. Otherwise a layer without `inputs` uses the
// previous layer, except that an EMBEDDING uses the data. 0 for the last layer.
std::vector<double> CutBytes(const model::Model& model);

// Adds a profile for `resource_type` (origin "analytic") to every layer without one, for a batch of `batch` > 0 samples
// on one unit of `hardware`. Errors: InvalidArgument naming the layer and attribute; then the model is unchanged.
absl::Status AddAnalyticProfiles(model::Model& model, const std::string& resource_type, const Hardware& hardware,
                                 double batch);

// The same for every resource of the request that names a datasheet. Errors: also InvalidArgument with the field's path
// for an unknown datasheet.
absl::Status AddAnalyticProfiles(model::PlanRequest& request, const HardwareCatalog& catalog);

}  // namespace medley::sched
