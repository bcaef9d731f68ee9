// What the fingerprint of a model covers, in the words of the job's manifest, so that a refusal can name what differs.
// Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "common/model/job_spec.h"

namespace medley::worker {

// The fields of `spec_json` that decide what is trained, as a JSON object without the others: epochs, evaluations, data
// that are only evaluated, and how the job is planned. A field that a later version adds counts. The paths of data
// and model are those of `spec`, which was read from it: there they are as this machine has them. "" if `spec_json` is
// no JSON object.
std::string TrainedSettings(std::string_view spec_json, const model::JobSpec& spec);

}  // namespace medley::worker
