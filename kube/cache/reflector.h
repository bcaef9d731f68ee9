// Mirrors one resource of the API server into an EventFifo: it lists, then watches without end.
// Modelled on client-go's tools/cache/reflector.go; the names of the tests refer to its rules
// (docs/design/kube-client.md).
//
//        +---------------- back off 0.8 s .. 60 s <----------------+
//        v                                                         | any other error
//   WatchList or LIST --Replace--> WATCH --events--> fifo          |
//                                   |  ^ clean end or cut: at once
//                                   |  | 429 or refused: back off  |
//                                   +--+---------------------------+
//
// Run blocks until stopped. Only LastResourceVersion may be called from other threads.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/cache/event_fifo.h"
#include "kube/client.h"

namespace medley::kube {

class Reflector {
 public:
  struct Options {
    Resource resource;
    std::string ns;  // empty: all
    std::string label_selector;
    std::string field_selector;
    bool watch_list = true;  // get the initial state by a watch; LIST if the server cannot
    // A server that ignores the WatchList request never ends its initial events: LIST after this timeout.
    base::nanoseconds watch_list_timeout = base::seconds(30);
    int page_size = 0;  // 0: 500, or no pages for a LIST that the server can answer from its cache
    // How long to retry a watch after internal errors (500) before listing.
    base::nanoseconds internal_error_retry = base::nanoseconds(0);
    uint64_t seed = 1;
    // Changes each object before it enters the fifo, for example drops fields that nobody reads. It must not change the
    // name. Called by Run's thread. May be null.
    std::function<void(Object&)> transform;
  };

  Reflector(Client& client, EventFifo& fifo, base::Clock& clock, Options options);

  void Run(std::stop_token stop);
  std::string LastResourceVersion() const;

 private:
  enum class Next { kRelist, kWatchAgain, kBackOffAndWatch };
  struct Stream;  // the progress of one watch

  // One round: gets the initial state, then watches until a new list is needed.
  void ListAndWatch(std::stop_token stop);
  absl::Status List(std::stop_token stop);
  absl::StatusOr<ObjectList> ListPages(const std::string& resource_version, std::stop_token stop, bool* paged);
  // Returns OK if the initial state is in the fifo and the stream (`stream`) was followed to its end.
  absl::Status WatchList(std::stop_token stop, Stream& stream);
  Next WatchOnce(std::stop_token stop);
  absl::Status Follow(const std::string& from, bool initial, std::stop_token stop, Stream& stream);
  bool OnEvent(WatchEvent event, bool initial, std::stop_token stop, Stream& stream);
  bool Deliver(WatchEvent event, const std::string& version, std::stop_token stop, Stream& stream);
  bool EndInitial(const std::string& version, std::stop_token stop, Stream& stream);
  Next Judge(const absl::Status& opened, const Stream& stream);
  bool HasWrongType(const Object& object) const;
  ObjectPtr Share(Object object) const;
  void BackOff(std::stop_token stop);
  std::string RelistVersion() const;
  void SetLastVersion(const std::string& version);

  Client& client_;
  EventFifo& fifo_;
  base::Clock& clock_;
  const Options options_;
  base::Backoff backoff_;
  base::Rng rng_;
  std::optional<base::SteadyTime> last_backoff_;
  bool version_unavailable_ = false;
  bool paged_ = false;
  bool watch_list_works_ = true;
  std::optional<base::SteadyTime> internal_error_since_;
  mutable base::Mutex mutex_;
  std::string last_version_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube
