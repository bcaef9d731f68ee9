// Hashes of what a job trains, by which it knows its own checkpoints and its own journal. Pure.
#pragma once

#include <fmt/core.h>

#include <string>

#include "common/base/hash.h"
#include "common/model/job_spec.h"

namespace medley::worker {

// A hash of model, training data, schema, optimizer, learning rate, batch size and seed. A job restores only
// checkpoints with its own hash. The number of epochs is not part of it: a checkpoint is as good for more of them.
inline std::string ModelFingerprint(const model::JobSpec& spec) {
  const model::TrainingSpec& t = spec.training;
  return base::HashHex(model::ProfileHash(spec) + "/" + t.optimizer + "/" + std::to_string(t.learning_rate) + "/" +
                       std::to_string(t.seed) + "/" + std::to_string(t.batch_size));
}

// A hash of the fingerprint, the exact learning rate, the format and header of the data, the meaning of labels, the
// number of epochs and the test data: all that decides which samples a job trains and what it reports at its end. A
// coordinator continues only a journal with its own hash. How the job is planned, priced and checkpointed, on how many
// micro-batches, and how many bad rows it accepts are not part of it.
inline std::string JobDigest(const model::JobSpec& spec) {
  const model::SourceSpec test = spec.data.test.value_or(model::SourceSpec());
  const model::SchemaSpec& schema = spec.data.schema;
  return base::HashHex(fmt::format("{}/{}/{}/{}/{}/{}/{}/{}", ModelFingerprint(spec), spec.training.learning_rate,
                                   spec.data.train.format, schema.label_positive, schema.header, spec.training.epochs,
                                   test.uri, test.format));
}

}  // namespace medley::worker
