// Mirrors one resource of the API server into an EventFifo: list, then watch for ever.
// After client-go's tools/cache/reflector.go; the rules are named in the tests.
//
//        +---------------- back off 0.8 s .. 60 s <----------------+
//        v                                                         | any other error
//   WatchList or LIST --Replace--> WATCH --events--> fifo          |
//                                   |  ^ clean end, cut: at once   |
//                                   |  | 429, refused: back off    |
//                                   +--+---------------------------+
//
// Run blocks until stopped. Not thread-safe but for LastResourceVersion.
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
    bool watch_list = true;  // ask for the initial state by a watch; LIST when the server cannot
    // A server that ignores the wish never ends its initial events: LIST after this.
    base::nanoseconds watch_list_timeout = base::seconds(30);
    int page_size = 0;  // 0: 500, but none for a LIST that the server can answer from its cache
    // How long a watch is tried again after an internal error (500) before listing.
    base::nanoseconds internal_error_retry = base::nanoseconds(0);
    uint64_t seed = 1;
    // Changes each object before it enters the fifo (to drop what nobody reads); not its name.
    // Called by Run. Null: none.
    std::function<void(Object&)> transform;
  };

  Reflector(Client& client, EventFifo& fifo, base::Clock& clock, Options options);

  void Run(std::stop_token stop);
  std::string LastResourceVersion() const;

 private:
  enum class Next { kRelist, kWatchAgain, kBackOffAndWatch };
  struct Stream;  // what one watch did

  // One round: the initial state, then watches until something asks for a list.
  void ListAndWatch(std::stop_token stop);
  absl::Status List(std::stop_token stop);
  absl::StatusOr<ObjectList> ListPages(const std::string& resource_version, std::stop_token stop, bool* paged);
  // OK: the initial state is in the fifo and the stream was followed to its end (`stream`).
  absl::Status WatchList(std::stop_token stop, Stream& stream);
  Next WatchOnce(std::stop_token stop);
  absl::Status Follow(const std::string& from, bool initial, std::stop_token stop, Stream& stream);
  bool OnEvent(WatchEvent event, bool initial, std::stop_token stop, Stream& stream);
  bool Deliver(WatchEvent event, const std::string& version, std::stop_token stop, Stream& stream);
  bool EndInitial(const std::string& version, std::stop_token stop, Stream& stream);
  Next Judge(const absl::Status& opened, const Stream& stream);
  bool Wrong(const Object& object) const;
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
