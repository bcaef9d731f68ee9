// Says in words how the job that wrote a checkpoint and the job that wants it differ. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>

namespace medley::worker {

inline constexpr size_t kMaxSettings = size_t{1} << 20;  // bytes of CheckpointManifest::settings

// "it was trained with other settings: spec.training.batchSize is 512 in the checkpoint and 256 in this job". `stored`
// and `own` are as CheckpointManifest::settings. Where they do not tell, for example because an earlier version wrote
// the checkpoint, the sentence says that.
std::string WhyOtherSettings(const std::string& stored, const std::string& own);

}  // namespace medley::worker
