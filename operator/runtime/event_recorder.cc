#include "operator/runtime/event_recorder.h"

#include <algorithm>

#include "common/base/backoff.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"

namespace medley::ops {
namespace {

constexpr size_t kMaxMessage = 1024;  // the API server refuses longer messages
constexpr size_t kMaxName = 200;      // of the object's name, so that it and the suffix fit into 253
constexpr int kTries = 3;

const char* TypeName(EventRecorder::Type type) { return type == EventRecorder::Type::kNormal ? "Normal" : "Warning"; }

kube::Json Involved(const kube::Object& object) {
  const kube::Key key = object.key();
  kube::Json involved = {{"apiVersion", object.api_version()},
                         {"kind", object.kind()},
                         {"name", key.name},
                         {"uid", object.uid()},
                         {"resourceVersion", object.resource_version()}};
  if (!key.ns.empty()) involved["namespace"] = key.ns;
  return involved;
}

// The first `limit` bytes at most, cut at the boundary of a UTF-8 character.
std::string Cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return std::string(text.substr(0, limit));
}

}  // namespace

EventRecorder::EventRecorder(kube::Client& client, base::Clock& clock, Options options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

EventRecorder::~EventRecorder() {
  thread_.request_stop();
  thread_.join();
}

bool EventRecorder::TakeToken(const std::string& uid) {
  const base::SteadyTime now = clock_.Steady();
  if (!buckets_.contains(uid) && buckets_.size() >= options_.remembered) {
    buckets_.erase(std::min_element(buckets_.begin(), buckets_.end(),
                                    [](const auto& a, const auto& b) { return a.second.at < b.second.at; }));
  }
  const auto [it, inserted] = buckets_.try_emplace(uid, Bucket{options_.burst, now});
  Bucket& bucket = it->second;
  bucket.tokens = std::min(options_.burst, bucket.tokens + base::ToSeconds(now - bucket.at) * options_.per_second);
  bucket.at = now;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

void EventRecorder::Record(const kube::Object& object, Type type, std::string_view reason, std::string_view message) {
  Pending event{Involved(object), type, std::string(reason), Cut(message, kMaxMessage), clock_.Now()};
  base::MutexLock lock(mutex_);
  if (queue_.size() >= options_.queue_capacity || !TakeToken(object.uid())) {
    ++dropped_;
    return;
  }
  queue_.push_back(std::move(event));
  changed_.NotifyAll();
}

bool EventRecorder::Flush(base::nanoseconds timeout) {
  base::MutexLock lock(mutex_);
  return changed_.WaitFor(mutex_, {}, timeout, [&] { return queue_.empty() && !busy_; });
}

void EventRecorder::Run(std::stop_token stop) {
  base::Backoff backoff({.first = base::milliseconds(200), .max = base::seconds(5)}, options_.seed);
  while (true) {
    Pending event;
    {
      base::MutexLock lock(mutex_);
      busy_ = false;
      changed_.NotifyAll();
      changed_.Wait(mutex_, stop, [&] { return !queue_.empty(); });
      if (stop.stop_requested()) return;
      event = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
    }
    absl::Status status;
    for (int tries = 0; tries < kTries; ++tries) {
      status = Write(event);
      // Retry only transient errors. A terminating namespace, for example, refuses all Events.
      if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) break;
      if (!clock_.SleepFor(backoff.Next(), stop)) return;
    }
    backoff.Reset();
    if (!status.ok()) {
      ++dropped_;
      base::log::Warn("an Event could not be written", {{"reason", event.reason}, {"error", base::ToString(status)}});
    }
  }
}

absl::Status EventRecorder::Write(const Pending& event) {
  const Id id{event.involved.value("uid", ""), TypeName(event.type), event.reason, event.message};
  const auto known = known_.find(id);
  if (known == known_.end() || event.at - known->second.last > options_.window) return Create(event, id);
  const kube::Json patch = {{"count", known->second.count + 1}, {"lastTimestamp", base::FormatTime(event.at)}};
  const auto patched = client_.Patch(kube::resources::Events(), known->second.key, kube::PatchType::kMerge, patch);
  if (kube::IsNotFound(patched.status())) return Create(event, id);  // the Event has expired on the API server
  if (!patched.ok()) return patched.status();
  ++known->second.count;
  known->second.last = event.at;
  return absl::OkStatus();
}

absl::Status EventRecorder::Create(const Pending& event, const Id& id) {
  const std::string object_name = Cut(event.involved.value("name", ""), kMaxName);
  const std::string suffix =
      base::HashHex(fmt::format("{}|{}|{}|{}|{}|{}", std::get<0>(id), event.reason, event.message,
                                event.at.time_since_epoch().count(), options_.seed, sequence_++));
  const kube::Key key{event.involved.value("namespace", "default"), object_name + "." + suffix};
  kube::Object object(kube::resources::Events(), key);
  kube::Json& json = object.mutable_json();
  json["involvedObject"] = event.involved;
  json["reason"] = event.reason;
  json["message"] = event.message;
  json["type"] = TypeName(event.type);
  json["count"] = 1;
  json["firstTimestamp"] = base::FormatTime(event.at);
  json["lastTimestamp"] = base::FormatTime(event.at);
  json["source"] = {{"component", options_.component}};
  json["reportingComponent"] = options_.component;
  json["reportingInstance"] = options_.component;
  const auto created = client_.Create(kube::resources::Events(), object);
  if (!created.ok()) return created.status();
  if (known_.size() >= options_.remembered && !known_.contains(id)) {
    known_.erase(std::min_element(known_.begin(), known_.end(),
                                  [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
  }
  known_[id] = {key, 1, event.at, event.at};
  return absl::OkStatus();
}

}  // namespace medley::ops
