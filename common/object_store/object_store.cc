#include "common/object_store/object_store.h"

#include <algorithm>
#include <utility>

#include "common/base/backoff.h"
#include "common/base/status.h"
#include "common/object_store/call.h"
#include "common/object_store/verdict.h"

namespace medley::object_store {
namespace {

constexpr size_t kMostAnswer = size_t{8} << 20;  // bytes of an answer that is no object
constexpr size_t kMostConnections = 32;          // that wait for their next request
constexpr int kMostEmptyPages = 100;             // of a listing, one after the other

base::milliseconds Milliseconds(base::nanoseconds time) {
  return std::max(base::milliseconds(1), std::chrono::duration_cast<base::milliseconds>(time));
}

std::string RangeOf(int64_t offset, int64_t bytes) { return fmt::format("bytes={}-{}", offset, offset + bytes - 1); }

ObjectInfo InfoOf(const http_client::Response& response, int64_t bytes) {
  return {bytes, response.Header("ETag"), response.Header("Last-Modified")};
}

bool IsStrong(const std::string& etag) { return etag.starts_with('"'); }

// A server may leave out what it sent before, but what it sends must agree.
bool IsOther(const ObjectInfo& expected, const http_client::Response& response) {
  const std::string etag = response.Header("ETag");
  const std::string modified = response.Header("Last-Modified");
  if (!expected.etag.empty() && !etag.empty()) return etag != expected.etag;
  return !expected.modified.empty() && !modified.empty() && modified != expected.modified;
}

absl::Status Changed(const std::string& what) {
  return base::FailedPrecondition("{}: the object changed meanwhile", what);
}

}  // namespace

// Connections that are open and idle. Thread-safe.
class ObjectStore::Pool {
 public:
  explicit Pool(const Settings& settings) : authorities_(settings.authorities) {}

  http_client::Result Run(const http_client::Request& request, const std::string& what, const std::stop_token& stop) {
    std::unique_ptr<http_client::Connection> connection = Take();
    http_client::Result result = connection->Run(request, what, stop);
    base::MutexLock lock(mutex_);
    if (result.status.ok() && idle_.size() < kMostConnections) idle_.push_back(std::move(connection));
    return result;
  }

 private:
  std::unique_ptr<http_client::Connection> Take() {
    {
      base::MutexLock lock(mutex_);
      if (!idle_.empty()) {
        auto connection = std::move(idle_.back());
        idle_.pop_back();
        return connection;
      }
    }
    return std::make_unique<http_client::Connection>(http_client::Options{
        .user_agent = "medley", .proxy_of_environment = true, .authorities = authorities_, .probe_silent_peers = true});
  }

  const std::string authorities_;
  base::Mutex mutex_;
  std::vector<std::unique_ptr<http_client::Connection>> idle_ ABSL_GUARDED_BY(mutex_);
};

ObjectStore::ObjectStore(Settings settings, base::Clock& clock, uint64_t seed, Limits limits, Exchange exchange)
    : settings_(std::move(settings)),
      clock_(clock),
      limits_(limits),
      pool_(std::make_unique<Pool>(settings_)),
      exchange_(exchange ? std::move(exchange)
                         : [this](const http_client::Request& request, const std::string& what,
                                  const std::stop_token& stop) { return pool_->Run(request, what, stop); }),
      rng_(seed) {}

ObjectStore::~ObjectStore() = default;

uint64_t ObjectStore::NextRandom() {
  base::MutexLock lock(mutex_);
  return rng_.Next();
}

absl::StatusOr<http_client::Response> ObjectStore::Run(const Location& at, const Call& call,
                                                       const std::stop_token& stop) {
  if (at.scheme == Scheme::kHttps && call.parts.method != "GET") {
    return base::Unimplemented("{}: https:// addresses are only read", call.what);
  }
  base::Backoff backoff({.first = limits_.first_wait, .max = limits_.most_wait, .factor = 2.0, .jitter = 0.5},
                        NextRandom());
  const base::SteadyTime end = clock_.Steady() + limits_.total;
  for (int attempt = 1;; ++attempt) {
    // Signed again each time: a signature is good for minutes only.
    MEDLEY_ASSIGN_OR_RETURN(http_client::Request request, MakeRequest(settings_, at, call.parts, clock_.Now()));
    const int64_t bytes = call.answer_bytes + static_cast<int64_t>(call.parts.body ? call.parts.body->size() : 0);
    const base::milliseconds patience = limits_.silence + base::milliseconds(bytes * 1000 / limits_.slowest);
    request.timeout = Milliseconds(std::min<base::nanoseconds>(patience, end - clock_.Steady()));
    request.first_byte_timeout = call.parts.body ? request.timeout : limits_.silence;
    request.max_body_bytes = std::max(kMostAnswer, static_cast<size_t>(call.answer_bytes));
    http_client::Result result = exchange_(request, call.what, stop);
    if (result.status.ok() && call.takes && call.takes(result.response)) return std::move(result.response);
    Verdict verdict = Judge(result, call.what, KeysOf(at), call.answer_bytes > 0, clock_);
    if (verdict.status.ok() && call.check) {
      verdict.status = call.check(result.response);
      verdict.retry = absl::IsUnavailable(verdict.status);
    }
    if (verdict.status.ok()) return std::move(result.response);
    if (!verdict.retry) return verdict.status;
    const base::nanoseconds wait = std::max<base::nanoseconds>(backoff.Next(), verdict.wait.value_or(base::seconds(0)));
    if (attempt >= limits_.attempts || clock_.Steady() + wait >= end) {
      return base::MakeStatus(verdict.status.code(),
                              fmt::format("{} (after {} attempts)", base::Message(verdict.status), attempt));
    }
    if (!clock_.SleepFor(wait, stop)) return base::Cancelled("{}: stopped", call.what);
  }
}

absl::StatusOr<ObjectInfo> ObjectStore::Stat(const Location& at, std::stop_token stop) {
  const std::string what = "looking at " + NameOf(at);
  if (at.scheme == Scheme::kHttps) return StatOfWeb(at, stop);
  const absl::StatusOr<http_client::Response> head = Run(at, {.what = what, .parts = {.method = "HEAD"}}, stop);
  if (absl::IsNotFound(head.status()) || absl::IsPermissionDenied(head.status()) ||
      absl::IsInvalidArgument(head.status())) {
    // The answer to a HEAD has no text that says why.
    MEDLEY_RETURN_IF_ERROR(
        Run(at, {.what = what, .parts = {.headers = {{"Range", RangeOf(0, 1)}}}, .answer_bytes = 1}, stop).status());
  }
  MEDLEY_RETURN_IF_ERROR(head.status());
  const http_client::Response& response = *head;
  MEDLEY_ASSIGN_OR_RETURN(const ContentRange range, ParseContentRange("bytes */" + response.Header("Content-Length")));
  if (response.Header("ETag").empty()) return base::InvalidArgument("{}: the answer has no ETag", what);
  return InfoOf(response, range.size);
}

// The first byte is asked for, as an address may be signed for GET alone.
absl::StatusOr<ObjectInfo> ObjectStore::StatOfWeb(const Location& at, const std::stop_token& stop) {
  const std::string what = "looking at " + NameOf(at);
  Call call{.what = what, .parts = {.headers = {{"Range", RangeOf(0, 1)}}}, .answer_bytes = 1};
  call.takes = [](const http_client::Response& response) { return response.code == 416; };  // it is empty
  const absl::StatusOr<http_client::Response> response = Run(at, call, stop);
  const auto no_ranges = [&] {
    return base::InvalidArgument("{}: the web server does not answer requests for a range of bytes", what);
  };
  if (absl::IsResourceExhausted(response.status())) return no_ranges();
  MEDLEY_RETURN_IF_ERROR(response.status());
  if (response->code == 200 && response->Header("Content-Range").empty()) {
    // Small enough to have arrived whole.
    return InfoOf(*response, static_cast<int64_t>(response->body.size()));
  }
  const absl::StatusOr<ContentRange> range = ParseContentRange(response->Header("Content-Range"));
  if (!range.ok()) return no_ranges();
  return InfoOf(*response, range->size);
}

absl::StatusOr<std::string> ObjectStore::Read(const Location& at, const ObjectInfo& expected, int64_t offset,
                                              int64_t bytes, std::stop_token stop) {
  if (bytes <= 0) return std::string();
  const std::string what = "reading " + NameOf(at);
  Call call{.what = what, .parts = {.headers = {{"Range", RangeOf(offset, bytes)}}}, .answer_bytes = bytes};
  if (IsStrong(expected.etag)) call.parts.headers.emplace_back("If-Match", expected.etag);
  const bool whole = offset == 0 && bytes == expected.bytes;
  call.check = [&](const http_client::Response& response) -> absl::Status {
    if (IsOther(expected, response)) return Changed(what);
    if (response.code == 200 && !whole) {
      return base::InvalidArgument("{}: the server does not answer requests for a range of bytes", what);
    }
    if (response.code == 206) {
      MEDLEY_ASSIGN_OR_RETURN(const ContentRange range, ParseContentRange(response.Header("Content-Range")));
      if (range.size != expected.bytes) return Changed(what);
      if (range.first != offset || range.last != offset + bytes - 1) {
        return base::Unavailable("{}: bytes {}-{} came instead of {}-{}", what, range.first, range.last, offset,
                                 offset + bytes - 1);
      }
    }
    if (static_cast<int64_t>(response.body.size()) == bytes) return absl::OkStatus();
    return base::Unavailable("{}: {} bytes came instead of {}", what, response.body.size(), bytes);
  };
  // It has become shorter than this range.
  call.takes = [](const http_client::Response& response) { return response.code == 416; };
  MEDLEY_ASSIGN_OR_RETURN(http_client::Response response, Run(at, call, stop));
  if (response.code == 416) return Changed(what);
  return std::move(response.body);
}

absl::StatusOr<Listing> ObjectStore::List(const Location& prefix, bool folders, std::stop_token stop) {
  const std::string what = "listing " + NameOf(prefix);
  if (prefix.scheme == Scheme::kHttps) return base::Unimplemented("{}: a web server has no listing", what);
  Location bucket = prefix;
  bucket.key.clear();
  Listing all;
  std::string token;
  for (int empty = 0;;) {
    Call call{.what = what, .parts = {.query = {{"list-type", "2"}, {"encoding-type", "url"}}}};
    if (!prefix.key.empty()) call.parts.query.emplace_back("prefix", prefix.key);
    if (folders) call.parts.query.emplace_back("delimiter", "/");
    if (!token.empty()) call.parts.query.emplace_back("continuation-token", token);
    MEDLEY_ASSIGN_OR_RETURN(const http_client::Response response, Run(bucket, call, stop));
    absl::StatusOr<ListingPage> page = ParseListing(response.body);
    if (!page.ok()) return base::Annotate(page.status(), what);
    empty = page->objects.empty() && page->prefixes.empty() ? empty + 1 : 0;
    for (ListedObject& object : page->objects) {
      if (!object.key.starts_with(prefix.key)) {
        return base::InvalidArgument("{}: the listing has an object that was not asked for", what);
      }
      all.objects.push_back(std::move(object));
    }
    std::ranges::move(page->prefixes, std::back_inserter(all.folders));
    if (all.objects.size() + all.folders.size() > limits_.most_listed) {
      return base::ResourceExhausted("{}: more than {} objects", what, limits_.most_listed);
    }
    if (page->next.empty()) return all;
    if (page->next == token || empty >= kMostEmptyPages) {
      return base::InvalidArgument("{}: the listing has no end", what);
    }
    token = page->next;
  }
}

absl::Status ObjectStore::Put(const Location& at, std::string_view bytes, std::stop_token stop) {
  Call call{.what = "writing " + NameOf(at), .parts = {.method = "PUT", .body = std::string(bytes)}};
  call.parts.headers = {{"Content-Type", "application/octet-stream"}};
  return Run(at, call, stop).status();
}

absl::Status ObjectStore::Copy(const Location& from, const Location& to, std::stop_token stop) {
  const std::string what = fmt::format("copying {} to {}", NameOf(from), NameOf(to));
  if (from.scheme != to.scheme) return base::Unimplemented("{}: they are of two kinds", what);
  Call call{.what = what, .parts = {.method = "PUT", .body = ""}};
  call.parts.headers = {{MetaPrefix(settings_, to) + "copy-source", "/" + from.bucket + "/" + EncodeKey(from.key)},
                        {"Content-Type", "application/octet-stream"}};
  return Run(to, call, stop).status();
}

absl::Status ObjectStore::Remove(const Location& at, std::stop_token stop) {
  const absl::Status status = Run(at, {.what = "removing " + NameOf(at), .parts = {.method = "DELETE"}}, stop).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace medley::object_store
