// Scripted faults of the API server, for tests of its clients.
//
//   server.faults().Add({.kind = Fault::Kind::kStatus, .verb = "list", .plural = "pods", .code = 429,
//                        .retry_after_seconds = 1, .times = 2});
//
// Each request takes the oldest fault that matches it. To refuse connections, use ApiServer::SetListening(false).
// Thread-safe.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace medley::localcluster::apiserver {

struct Fault {
  enum class Kind {
    kStatus,        // answer `code` (410 on list; 429, 500, 503; 409 Conflict; 504 too large version)
    kWatchExpired,  // the watch opens and sends ERROR 410 Expired
    kWatchError,    // the watch opens and sends ERROR `code`
    kWatchCut,      // the stream ends, without its last chunk, after `events` events
    kHalfLine,      // the same, but in the middle of an event's line
    kWatchClose,    // the stream ends properly after `events` events
    kBookmark,      // a bookmark is sent at once
    kDrop,          // the connection is closed without an answer
    kSlowBody,      // the answer pauses for `delay` in the middle of its body (a watch: before it)
  };
  Kind kind = Kind::kStatus;
  std::string verb;    // get, list, watch, create, update, patch, delete; empty: any
  std::string plural;  // "pods"; empty: any
  int code = 500;
  std::string reason = "";  // empty: the usual reason of the code
  int retry_after_seconds = 0;
  int events = 0;
  base::nanoseconds delay{0};
  int times = 1;
};

class FaultScript {
 public:
  void Add(Fault fault);
  void Clear();
  size_t left() const;   // faults that have not been taken yet
  size_t taken() const;  // faults that have been taken
  std::optional<Fault> Take(std::string_view verb, std::string_view plural);

 private:
  mutable base::Mutex mutex_;
  std::deque<Fault> faults_ ABSL_GUARDED_BY(mutex_);
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::localcluster::apiserver
