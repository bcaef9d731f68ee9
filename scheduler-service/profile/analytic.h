// Profiles from datasheets: a roofline estimate of what each layer costs on a machine that nobody measured.
//
// For a batch of b samples on one unit, with the work of work.h and the efficiencies of analytic.cc:
//   pass(flops, bytes) = max(flops / (peak * kProductEfficiency), bytes / (bandwidth * kStreamEfficiency))
//   compute(b) = pass(forward) + pass(backward) + pass(update) + rows + scalar operations + launches * launchSeconds
//   sync       = dense: ring allreduce among many units, 2 W / network (two units need half of it);
//                sparse: pull and push of the distinct rows that b touches, the server's work included
//   transfer(b)= 2 * b * bytes that cross the cut behind the layer / network
// The fraction that divides by units is 1 - f(0) / f(b), f being the cost: launches, latencies and whatever is done
// once a step (weights, allreduce) stay, everything that is proportional to the batch divides. sync and transfer have
// one such fraction, of their sum, as measured profiles do.
// Sparse layers are synchronised by parameter servers, also on GPUs: serverSeconds > 0. Pure.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "common/model/planning.h"
#include "scheduler-service/profile/hardware.h"

namespace medley::sched {

// Bytes per sample that cross the cut behind each layer: outputs of the layers up to it that later ones take. In a
// model without any `inputs` that is the layer's output. Where some layer has them, an empty list means the layer
// before, and for an EMBEDDING the data. 0 for the last layer.
std::vector<double> CutBytes(const model::Model& model);

// Adds a profile of `resource_type` (origin "analytic") to every layer that has none, for a batch of `batch` > 0
// samples on one unit of `hardware`. All layers or, on an error, none: InvalidArgument naming the layer and attribute.
absl::Status AddAnalyticProfiles(model::Model& model, const std::string& resource_type, const Hardware& hardware,
                                 double batch);

// The same for every resource of the request that names a datasheet. Errors: InvalidArgument with the field's path for
// a datasheet that `catalog` does not have.
absl::Status AddAnalyticProfiles(model::PlanRequest& request, const HardwareCatalog& catalog);

}  // namespace medley::sched
