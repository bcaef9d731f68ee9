// What a pull is answered with when its step is applied. Internal to worker/ps.
#pragma once

#include <absl/status/status.h>

namespace medley::job::v1 {
class PullRequest;
class PullResponse;
}  // namespace medley::job::v1

namespace medley::worker {

class RowStore;

// Adds the rows of the request to the response: all, or with `since` those that have changed. Errors: InvalidArgument
// for a malformed request; those of RowStore::Read and ReadChanged.
absl::Status AnswerPull(const job::v1::PullRequest& request, RowStore& store, job::v1::PullResponse& response);

}  // namespace medley::worker
