// Writes a watch to its connection: filters and encodes events, adds bookmarks, injects faults. Runs in the
// connection's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/http_server/message.h"
#include "localcluster/apiserver/faults.h"
#include "localcluster/apiserver/selectors.h"
#include "localcluster/apiserver/store.h"

namespace medley::localcluster::apiserver {

using http_server::BodySink;

struct WatchSpec {
  InfoPtr info;
  Selector selector;
  std::optional<uint64_t> since;  // nullopt: first send the current objects as ADDED events
  bool bookmarks = false;
  bool initial_end = false;  // WatchList: send a bookmark after the current objects
  base::nanoseconds timeout = base::seconds(1800);
  base::nanoseconds bookmark_interval = base::seconds(60);
  std::optional<Fault> fault;
  // Returns the form in which an object is sent: as it is, or as a Table.
  std::function<kube::Json(const kube::Json& object)> present;
};

// Writes events to `sink` until it is closed, the timeout passes, the watcher is cut, or `stop` is requested.
void StreamWatch(Store& store, const WatchSpec& spec, BodySink& sink, std::stop_token stop);

}  // namespace medley::localcluster::apiserver
