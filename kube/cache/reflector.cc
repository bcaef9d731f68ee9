#include "kube/cache/reflector.h"

#include <map>
#include <thread>

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"

namespace medley::kube {
namespace {

constexpr int kPageSize = 500;
constexpr base::nanoseconds kShortWatch = base::seconds(1);
constexpr base::nanoseconds kBackoffReset = std::chrono::minutes(2);
// Gives waits of 0.8 s, doubling to 30 s, each times a random number in [1, 2): 1.5 times the wait, with a third of
// jitter in both directions.
constexpr base::Backoff::Options kBackoff{
    .first = base::milliseconds(1200), .max = base::seconds(45), .factor = 2.0, .jitter = 1.0 / 3};
constexpr const char* kInitialEventsEnd = "k8s.io/initial-events-end";

}  // namespace

struct Reflector::Stream {
  base::SteadyTime began;
  base::nanoseconds took{0};
  size_t events = 0;
  absl::Status error;                // from an ERROR event
  bool unordered = false;            // started at version "" or "0" and has sent only ADDED events so far
  bool initial_done = false;         // WatchList: the bookmark that ends the initial events has arrived
  std::map<Key, ObjectPtr> initial;  // WatchList: objects before that bookmark
  std::jthread* guard = nullptr;     // WatchList: ends the stream if the bookmark is late
};

Reflector::Reflector(Client& client, EventFifo& fifo, base::Clock& clock, Options options)
    : client_(client),
      fifo_(fifo),
      clock_(clock),
      options_(std::move(options)),
      backoff_(kBackoff, options_.seed),
      rng_(base::Mix64(options_.seed)) {}

void Reflector::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    ListAndWatch(stop);
    BackOff(stop);
  }
}

std::string Reflector::LastResourceVersion() const {
  base::MutexLock lock(mutex_);
  return last_version_;
}

void Reflector::SetLastVersion(const std::string& version) {
  base::MutexLock lock(mutex_);
  last_version_ = version;
}

std::string Reflector::RelistVersion() const {
  if (version_unavailable_) return "";
  const std::string last = LastResourceVersion();
  return last.empty() ? "0" : last;
}

void Reflector::BackOff(std::stop_token stop) {
  const base::SteadyTime now = clock_.Steady();
  if (last_backoff_ && now - *last_backoff_ > kBackoffReset) backoff_.Reset();
  last_backoff_ = now;
  if (!stop.stop_requested()) clock_.SleepFor(backoff_.Next(), stop);
}

void Reflector::ListAndWatch(std::stop_token stop) {
  Next next = Next::kWatchAgain;
  bool listed = false;
  if (options_.watch_list && watch_list_works_) {
    Stream stream;
    const absl::Status status = WatchList(stop, stream);
    if (stop.stop_requested()) return;
    if (stream.initial_done) {
      listed = true;
      next = Judge(status, stream);
    } else {
      base::log::Info("watch-list failed, listing instead",
                      {{"resource", options_.resource.plural}, {"error", base::ToString(status)}});
    }
  }
  if (!listed) {
    const absl::Status status = List(stop);
    if (stop.stop_requested()) return;
    if (!status.ok()) {
      base::log::Warn("list failed", {{"resource", options_.resource.plural}, {"error", base::ToString(status)}});
      return;
    }
  }
  while (!stop.stop_requested() && next != Next::kRelist) {
    if (next == Next::kBackOffAndWatch) BackOff(stop);
    if (!stop.stop_requested()) next = WatchOnce(stop);
  }
}

bool Reflector::HasWrongType(const Object& object) const {
  return object.kind() != options_.resource.kind || object.api_version() != options_.resource.ApiVersion();
}

ObjectPtr Reflector::Share(Object object) const {
  if (options_.transform) options_.transform(object);
  return std::make_shared<const Object>(std::move(object));
}

absl::StatusOr<ObjectList> Reflector::ListPages(const std::string& resource_version, std::stop_token stop,
                                                bool* paged) {
  ListOptions options{.ns = options_.ns,
                      .label_selector = options_.label_selector,
                      .field_selector = options_.field_selector,
                      .limit = kPageSize,
                      .stop = std::move(stop)};
  if (options_.page_size > 0) {
    options.limit = options_.page_size;
  } else if (!paged_ && resource_version != "" && resource_version != "0") {
    options.limit = 0;
  }
  const auto set_version = [&] {
    if (!resource_version.empty()) options.resource_version = resource_version;
  };
  set_version();
  ObjectList all;
  while (true) {
    auto page = client_.List(options_.resource, options);
    if (!page.ok()) {
      if (options.continue_token.empty() || !IsGone(page.status())) return page.status();
      // The server has dropped the snapshot of these pages: list everything at once, from the start.
      options.continue_token.clear();
      options.limit = 0;
      set_version();
      all.items.clear();
      continue;
    }
    std::move(page->items.begin(), page->items.end(), std::back_inserter(all.items));
    all.resource_version = page->resource_version;
    if (page->continue_token.empty()) return all;
    *paged = true;
    options.continue_token = page->continue_token;
    options.resource_version = std::nullopt;
  }
}

absl::Status Reflector::List(std::stop_token stop) {
  const std::string version = RelistVersion();
  bool paged = false;
  auto list = ListPages(version, stop, &paged);
  if (!list.ok() && (IsGone(list.status()) || IsTooLargeResourceVersion(list.status()))) {
    version_unavailable_ = true;
    list = ListPages(RelistVersion(), stop, &paged);
  }
  if (!list.ok()) return list.status();
  if (version == "0" && paged) paged_ = true;
  FifoEvent event{.type = FifoEvent::Type::kReplaced, .resource_version = list->resource_version};
  event.objects.reserve(list->items.size());
  for (Object& item : list->items) {
    if (HasWrongType(item)) {
      return base::DataLoss("listing {}: an item has kind {} and apiVersion {}", options_.resource.plural, item.kind(),
                            item.api_version());
    }
    event.objects.push_back(Share(std::move(item)));
  }
  version_unavailable_ = false;
  if (!fifo_.Push(std::move(event), stop)) return base::Cancelled("list: stopped");
  SetLastVersion(list->resource_version);
  return absl::OkStatus();
}

absl::Status Reflector::WatchList(std::stop_token stop, Stream& stream) {
  while (!stop.stop_requested()) {
    stream = Stream();
    std::stop_source late;
    const std::stop_callback forward(stop, [&] { late.request_stop(); });
    absl::Status status;
    {
      std::jthread guard([&](std::stop_token mine) {
        if (clock_.SleepFor(options_.watch_list_timeout, mine)) late.request_stop();
      });
      stream.guard = &guard;
      status = Follow(version_unavailable_ ? "" : LastResourceVersion(), true, late.get_token(), stream);
      stream.guard = nullptr;
    }
    if (stream.initial_done) return status;
    if (!stream.error.ok()) status = stream.error;
    if (stop.stop_requested()) break;
    if (status.ok()) {
      watch_list_works_ = !late.stop_requested();
      return base::DeadlineExceeded("the watch-list ended before the bookmark that ends its initial events");
    }
    if (IsConnectionRefused(status) || IsTooManyRequests(status)) {
      BackOff(stop);
    } else if ((IsGone(status) || IsTooLargeResourceVersion(status)) && !version_unavailable_) {
      version_unavailable_ = true;
    } else {
      // A server without the feature always refuses the option as invalid.
      if (absl::IsInvalidArgument(status)) watch_list_works_ = false;
      return status;
    }
  }
  return base::Cancelled("watch-list: stopped");
}

Reflector::Next Reflector::WatchOnce(std::stop_token stop) {
  Stream stream;
  const absl::Status status = Follow(LastResourceVersion(), false, stop, stream);
  return Judge(status, stream);
}

absl::Status Reflector::Follow(const std::string& from, bool initial, std::stop_token stop, Stream& stream) {
  const WatchOptions options{.ns = options_.ns,
                             .label_selector = options_.label_selector,
                             .field_selector = options_.field_selector,
                             .resource_version = from,
                             .timeout_seconds = 300 + static_cast<int>(rng_.Below(300)),
                             .allow_bookmarks = true,
                             .send_initial_events = initial};
  stream.began = clock_.Steady();
  stream.unordered = !initial && (from.empty() || from == "0");
  const absl::Status status = client_.Watch(options_.resource, options, stop, [&](WatchEvent event) {
    return OnEvent(std::move(event), initial, stop, stream);
  });
  stream.took = clock_.Steady() - stream.began;
  return status;
}

bool Reflector::OnEvent(WatchEvent event, bool initial, std::stop_token stop, Stream& stream) {
  using Type = WatchEvent::Type;
  if (stop.stop_requested()) return false;
  if (event.type == Type::kError) {
    stream.error = ErrorFromStatusObject(event.object, "watching " + options_.resource.plural);
    return false;
  }
  const bool nameless = event.type != Type::kBookmark && event.object.key().name.empty();
  if (event.type == Type::kUnknown || HasWrongType(event.object) || nameless) {
    base::log::Warn("watch event skipped: its type is unknown, its kind is wrong or it has no name",
                    {{"resource", options_.resource.plural}, {"kind", event.object.kind()}});
    return true;
  }
  ++stream.events;
  const std::string version = event.object.resource_version();
  if (!initial || stream.initial_done) return Deliver(std::move(event), version, stop, stream);
  const Key key = event.object.key();
  if (event.type == Type::kBookmark) {
    if (event.object.annotation(kInitialEventsEnd) == "true") return EndInitial(version, stop, stream);
  } else if (event.type == Type::kDeleted) {
    stream.initial.erase(key);
  } else {
    stream.initial[key] = Share(std::move(event.object));
  }
  return true;
}

bool Reflector::EndInitial(const std::string& version, std::stop_token stop, Stream& stream) {
  stream.guard->request_stop();
  FifoEvent event{.type = FifoEvent::Type::kReplaced, .resource_version = version};
  event.objects.reserve(stream.initial.size());
  for (auto& [key, object] : stream.initial) event.objects.push_back(std::move(object));
  stream.initial.clear();
  if (!fifo_.Push(std::move(event), stop)) return false;
  stream.initial_done = true;
  // From here on the stream counts as a separate watch.
  stream.began = clock_.Steady();
  stream.events = 0;
  version_unavailable_ = false;
  SetLastVersion(version);
  return true;
}

bool Reflector::Deliver(WatchEvent event, const std::string& version, std::stop_token stop, Stream& stream) {
  using Type = WatchEvent::Type;
  if (event.type != Type::kAdded) stream.unordered = false;
  FifoEvent out{.resource_version = stream.unordered ? "" : version};
  switch (event.type) {
    case Type::kAdded:
      out.type = FifoEvent::Type::kAdded;
      break;
    case Type::kModified:
      out.type = FifoEvent::Type::kUpdated;
      break;
    case Type::kDeleted:
      out.type = FifoEvent::Type::kDeleted;
      break;
    default:
      out.type = FifoEvent::Type::kBookmark;
      break;
  }
  if (event.type != Type::kBookmark) out.object = Share(std::move(event.object));
  if (!fifo_.Push(std::move(out), stop)) return false;
  if (!stream.unordered && !version.empty()) SetLastVersion(version);
  internal_error_since_.reset();
  return true;
}

Reflector::Next Reflector::Judge(const absl::Status& opened, const Stream& stream) {
  const auto warn = [&](std::string_view what, const absl::Status& status) {
    base::log::Warn(what, {{"resource", options_.resource.plural}, {"error", base::ToString(status)}});
    return Next::kRelist;
  };
  if (!stream.error.ok()) {
    if (IsGone(stream.error)) return Next::kRelist;  // List tries the last version first
    if (IsTooManyRequests(stream.error)) return Next::kBackOffAndWatch;
    if (HttpCode(stream.error) == 500) {
      const base::SteadyTime now = clock_.Steady();
      if (!internal_error_since_) internal_error_since_ = now;
      if (now - *internal_error_since_ < options_.internal_error_retry) return Next::kBackOffAndWatch;
      internal_error_since_.reset();
    }
    return warn("watch ended with an error", stream.error);
  }
  if (!opened.ok() && !IsStreamCut(opened)) {
    if (IsConnectionRefused(opened) || IsTooManyRequests(opened)) return Next::kBackOffAndWatch;
    return warn("watch failed", opened);
  }
  if (stream.took < kShortWatch && stream.events == 0) {
    return warn("watch ended within a second without an event", opened);
  }
  return Next::kWatchAgain;
}

}  // namespace medley::kube
