// A hash of model, data schema, optimizer, batch size and seed. A job restores only checkpoints with its own hash.
// Pure.
#pragma once

#include <string>

#include "common/base/hash.h"
#include "common/model/job_spec.h"

namespace medley::worker {

inline std::string ModelFingerprint(const model::JobSpec& spec) {
  const model::TrainingSpec& t = spec.training;
  return base::HashHex(model::ProfileHash(spec) + "/" + t.optimizer + "/" + std::to_string(t.learning_rate) + "/" +
                       std::to_string(t.seed) + "/" + std::to_string(t.batch_size));
}

}  // namespace medley::worker
