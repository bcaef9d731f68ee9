#include "localcluster/apiserver/watch_stream.h"

#include "localcluster/apiserver/api_error.h"

namespace medley::localcluster::apiserver {
namespace {

constexpr base::nanoseconds kTick = base::milliseconds(500);  // how soon a disconnected peer is noticed

class Stream {
 public:
  Stream(Store& store, const WatchSpec& spec, BodySink& sink, std::stop_token stop)
      : store_(store), spec_(spec), sink_(sink), stop_(std::move(stop)) {}

  void Run() {
    if (FaultAtOpen()) return;
    auto opened = store_.Open(spec_.info->bucket(), spec_.since);
    if (!opened.ok()) {
      Send("ERROR", StatusObject(opened.status()));
      return;
    }
    for (const kube::ObjectPtr& object : opened->initial.objects) {
      if (spec_.selector.Matches(*object) && !Event("ADDED", object->json())) return;
    }
    if (spec_.initial_end && spec_.bookmarks && !Bookmark(opened->initial.version, true)) return;
    if (Is(Fault::Kind::kBookmark) && !Bookmark(opened->initial.version, false)) return;
    Follow(*opened->queue);
  }

 private:
  bool Is(Fault::Kind kind) const { return spec_.fault.has_value() && spec_.fault->kind == kind; }

  bool FaultAtOpen() {
    if (Is(Fault::Kind::kWatchExpired)) {
      Send("ERROR", StatusObject(ExpiredError("too old resource version: 1 (2)")));
      return true;
    }
    if (Is(Fault::Kind::kWatchError)) {
      const int code = spec_.fault->code;
      Send("ERROR", StatusObject(ApiError(code, code == 429 ? "TooManyRequests" : "InternalError", "scripted fault")));
      return true;
    }
    return Ended();
  }

  // True if a scripted fault ends the stream after the events sent so far.
  bool Ended() {
    const bool ends = Is(Fault::Kind::kWatchCut) || Is(Fault::Kind::kHalfLine) || Is(Fault::Kind::kWatchClose);
    if (!ends || events_ < spec_.fault->events) return false;
    if (Is(Fault::Kind::kHalfLine)) sink_.Write("{\"type\":\"MODIFIED\",\"object\":{\"ki");
    if (!Is(Fault::Kind::kWatchClose)) sink_.Abort();
    return true;
  }

  bool Send(const char* type, const kube::Json& object) {
    std::string line = "{\"type\":\"";
    line += type;
    line += "\",\"object\":";
    line += kube::Dump(object);
    line += "}\n";
    return sink_.Write(line);
  }

  bool Event(const char* type, const kube::Json& object) {
    if (!Send(type, spec_.present(object))) return false;
    ++events_;
    return !Ended();
  }

  bool Bookmark(uint64_t version, bool end) {
    kube::Json object = {{"kind", spec_.info->resource.kind},
                         {"apiVersion", spec_.info->resource.ApiVersion()},
                         {"metadata", {{"resourceVersion", std::to_string(version)}, {"creationTimestamp", nullptr}}}};
    if (end) object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
    return Send("BOOKMARK", spec_.present(object));
  }

  bool Deliver(const Change& change) {
    const bool now = change.type != Change::Type::kDeleted && spec_.selector.Matches(*change.object);
    const bool before = change.previous != nullptr && spec_.selector.Matches(*change.previous);
    if (now) return Event(before ? "MODIFIED" : "ADDED", change.object->json());
    if (before) return Event("DELETED", change.object->json());
    return true;
  }

  void Follow(WatchQueue& queue) {
    const base::SteadyTime end = clock_.Steady() + spec_.timeout;
    base::SteadyTime bookmark = clock_.Steady() + spec_.bookmark_interval;
    while (!stop_.stop_requested()) {
      const base::SteadyTime now = clock_.Steady();
      if (now >= end) return;
      const auto change = queue.Next(stop_, std::min(end, now + kTick));
      if (change.has_value()) {
        if (!Deliver(*change)) return;
        continue;
      }
      if (queue.cut() || !sink_.Alive()) return;
      if (!spec_.bookmarks || clock_.Steady() < bookmark) continue;
      bookmark = clock_.Steady() + spec_.bookmark_interval;
      const auto version = store_.Bookmark(queue);
      if (version.has_value() && !Bookmark(*version, false)) return;
    }
  }

  Store& store_;
  const WatchSpec& spec_;
  BodySink& sink_;
  const std::stop_token stop_;
  const base::SystemClock clock_;  // waits on sockets use real time
  int events_ = 0;
};

}  // namespace

void StreamWatch(Store& store, const WatchSpec& spec, BodySink& sink, std::stop_token stop) {
  Stream(store, spec, sink, std::move(stop)).Run();
}

}  // namespace medley::localcluster::apiserver
