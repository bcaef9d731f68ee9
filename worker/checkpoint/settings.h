// Says in words how the job that wrote a checkpoint and the job that wants it differ. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/model/fingerprint.h"
#include "worker/checkpoint/layout.h"

namespace medley::worker {

inline constexpr size_t kMaxSettings = size_t{1} << 20;  // bytes of CheckpointManifest::settings

// Whether a checkpoint is of the model with this fingerprint and these settings. Fingerprints that two versions of
// Medley make of one model differ: then the settings decide, by what counts in this version.
bool IsOfModel(const CheckpointManifest& manifest, std::string_view fingerprint, const std::string& settings);

// "it was trained with other settings: spec.training.batchSize is 512 in the checkpoint and 256 in this job". `stored`
// and `own` are as CheckpointManifest::settings; those of earlier versions have other fields too, which do not count.
// Where they do not tell, for example because there are none, the sentence says that.
std::string WhyOtherSettings(const std::string& stored, const std::string& own);

// "spec.training.epochs is 3 in its job and 5 in this job; ...", where `old_place` is "in its job", of the fields that
// count for `purpose`. Empty where the settings do not tell.
std::string SettingsInWords(const std::string& stored, const std::string& own, model::Purpose purpose,
                            const std::string& old_place, const std::string& new_place);

}  // namespace medley::worker
