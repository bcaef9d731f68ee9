// A watch as it goes over the wire: filter, encode, bookmarks, faults. Runs in its connection's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "localcluster/apiserver/faults.h"
#include "localcluster/apiserver/http.h"
#include "localcluster/apiserver/selectors.h"
#include "localcluster/apiserver/store.h"

namespace medley::kube::apiserver {

struct WatchSpec {
  InfoPtr info;
  Selector selector;
  std::optional<uint64_t> since;  // nullopt: the state now comes first, as ADDED events
  bool bookmarks = false;
  bool initial_end = false;  // WatchList: a bookmark after the state
  base::nanoseconds timeout = base::seconds(1800);
  base::nanoseconds bookmark_interval = base::seconds(60);
  std::optional<Fault> fault;
  // How an object is shown (as itself or as a Table row).
  std::function<Json(const Json& object)> present;
};

// Writes events to `sink` until it goes, the time is over, the watcher is cut, or `stop`.
void StreamWatch(Store& store, const WatchSpec& spec, BodySink& sink, std::stop_token stop);

}  // namespace medley::kube::apiserver
