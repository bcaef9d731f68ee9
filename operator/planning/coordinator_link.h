// The connection to one job's coordinator: sends plans, and receives observations over a stream that reconnects by
// itself. Thread-safe.
//
// Owner: CoordinatorLinks, by job. A link belongs to one address and one set of credentials: a coordinator that
// restarts at another address gets a new link. One thread serves the streams of all links.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/object.h"
#include "operator/records/connection.h"
#include "operator/records/observation.h"

namespace grpc {
class Channel;
}
namespace medley::job::v1 {
class Observation;
}
namespace medley::rpc {
class MutualTls;
}

namespace medley::ops {

class ObservationStream;
class StreamLoop;
struct PlanRecord;

class CoordinatorLink {
 public:
  // Called after each observation from the loop's thread, which all links share, so it must not block. `news`: IsNews,
  // compared with the last observation of this stream that was news.
  using OnChange = std::function<void(bool news)>;
  // `tls`: null: plain text.
  CoordinatorLink(StreamLoop& loop, Connection connection, std::shared_ptr<const rpc::MutualTls> tls, uint64_t seed,
                  OnChange on_change);
  ~CoordinatorLink();

  const Connection& connection() const { return connection_; }
  const std::string& address() const { return connection_.address; }
  const std::string& token() const { return connection_.credentials.token; }
  // The latest observation; null before the first.
  std::shared_ptr<const Observation> latest() const;

  // Sends the plan and returns the generation that the coordinator has accepted. Idempotent by generation. Errors:
  // FailedPrecondition (older than the accepted plan, or the job is over), Unavailable, DeadlineExceeded. `term`, also
  // below: this operator's leader term; if another operator has led since, the error has the newer one
  // (model::NewerTerm).
  absl::StatusOr<int64_t> ApplyPlan(const PlanRecord& record, int64_t term, std::stop_token stop);
  // `notice`: how long the members can still run.
  absl::Status Drain(const std::vector<std::string>& members, base::nanoseconds notice, int64_t term,
                     std::stop_token stop);
  // Suspends training within `timeout`. Returns the step of the checkpoint.
  absl::StatusOr<int64_t> Suspend(const std::string& reason, base::nanoseconds timeout, int64_t term,
                                  std::stop_token stop);

 private:
  void Hear(const job::v1::Observation& observation, bool first);

  const Connection connection_;
  const OnChange on_change_;
  const std::shared_ptr<grpc::Channel> channel_;
  mutable base::Mutex mutex_;
  std::shared_ptr<const Observation> latest_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Observation> published_;  // the last that was news on this stream; for the loop's thread
  std::unique_ptr<ObservationStream> stream_;     // last: it uses all of the above
};

// The links of all jobs. Thread-safe.
class CoordinatorLinks {
 public:
  using OnChange = std::function<void(const kube::Key& job, bool news)>;
  CoordinatorLinks(uint64_t seed, OnChange on_change);
  ~CoordinatorLinks();

  // The job's link; a new one when the address or the credentials changed. The link has a certificate of its own, which
  // is only in this process and valid as long as the CA. Errors: of the CA.
  absl::StatusOr<std::shared_ptr<CoordinatorLink>> For(const kube::Key& job, const Connection& connection);
  // Null if the job has no link.
  std::shared_ptr<CoordinatorLink> Find(const kube::Key& job) const;
  void Drop(const kube::Key& job);
  void Clear();

 private:
  const uint64_t seed_;
  const OnChange on_change_;
  const std::unique_ptr<StreamLoop> loop_;
  mutable base::Mutex mutex_;
  std::map<kube::Key, std::shared_ptr<CoordinatorLink>> links_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::ops
