// The settings of the job beside its journal, so that a refusal of the journal can name what differs. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "worker/checkpoint/files.h"

namespace medley::worker {

inline constexpr char kJobSettingsFile[] = "job.json";

// Writes that the job with this digest has these settings, as JSON, unless the file says it already. Without a digest
// or settings it does nothing. Errors: those of writing.
absl::Status KeepJobSettings(const Volume& root, const std::string& digest, const std::string& settings);

// OK when the journal, with its digest, is of the job with `digest` and `settings`, or when one of the digests is not
// known or of another version of Medley. Errors: InvalidArgument that names each field that differs with both values,
// if the folder has the settings of the journal's job.
absl::Status CheckJobSettings(const Volume& root, const std::string& journal_digest, const std::string& digest,
                              const std::string& settings);

}  // namespace medley::worker
