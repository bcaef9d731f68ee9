// Reads and writes objects: s3:// (AWS and servers that speak its protocol), gs:// and, only to read, https://.
//
//   ObjectStore store(settings, clock, base::SystemSeed());
//   MEDLEY_ASSIGN_OR_RETURN(const Location at, ParseLocation("s3://bucket/key"));
//   MEDLEY_ASSIGN_OR_RETURN(const ObjectInfo object, store.Stat(at, stop));
//   MEDLEY_ASSIGN_OR_RETURN(const std::string bytes, store.Read(at, object, 0, object.bytes, stop));
//
// Each call is tried again after errors that may pass (verdict.h), with waits that double and are jittered, until
// Limits::attempts or Limits::total. Errors are those of Judge; DeadlineExceeded and Unavailable when the tries are
// used up; Cancelled; Unimplemented (writing to https://). Thread-safe: calls run at the same time, each on a
// connection of its own.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/http_client/connection.h"
#include "common/object_store/location.h"
#include "common/object_store/settings.h"
#include "common/object_store/wire.h"

namespace medley::object_store {

struct Limits {
  int attempts = 8;                    // of one request
  base::milliseconds total{600'000};   // of one request with all its attempts
  base::milliseconds silence{30'000};  // until the header of a response
  base::milliseconds first_wait{200};  // before the second attempt
  base::milliseconds most_wait{10'000};
  int64_t slowest = 50'000;          // bytes a second that an attempt is given for its body
  int64_t piece = int64_t{8} << 20;  // bytes of one request for a part of an object; at least 5 MiB for S3
  size_t most_listed = 1'000'000;    // objects of one listing
};

// One state of an object.
struct ObjectInfo {
  int64_t bytes = 0;
  std::string etag;      // with its quotes; of https://, "" if the server has none
  std::string modified;  // Last-Modified, as sent
  bool operator==(const ObjectInfo&) const = default;
};

// An upload in parts that was begun. It becomes an object when it is completed, and costs money until it is ended.
struct StartedUpload {
  std::string id;
  std::string mark;  // by which its object is known when the answer to its completion is lost
};

struct Listing {
  std::vector<ListedObject> objects;  // in the order of the server: by name
  std::vector<std::string> folders;   // with a delimiter: the prefixes below
};

// Runs one exchange; http_client::Connection::Run by default.
using Exchange =
    std::function<http_client::Result(const http_client::Request&, const std::string& what, const std::stop_token&)>;

class ObjectStore {
 public:
  // `clock` must outlive it. `seed`: of the jitter and of the ids of uploads. `exchange`: for tests.
  ObjectStore(Settings settings, base::Clock& clock, uint64_t seed, Limits limits = {}, Exchange exchange = {});
  ~ObjectStore();
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;

  const Limits& limits() const { return limits_; }

  absl::StatusOr<ObjectInfo> Stat(const Location& at, std::stop_token stop);
  // `bytes` bytes from `offset` on, which the object must have. Errors: also FailedPrecondition when the object is not
  // `expected` any more; InvalidArgument when a web server does not answer ranges.
  absl::StatusOr<std::string> Read(const Location& at, const ObjectInfo& expected, int64_t offset, int64_t bytes,
                                   std::stop_token stop);
  // All objects whose key begins with that of `prefix`; with `folders`, those with a "/" after it only as folders.
  // Errors: also ResourceExhausted (Limits::most_listed).
  absl::StatusOr<Listing> List(const Location& prefix, bool folders, std::stop_token stop);
  // Replaces the object at once: readers see the old or the new one.
  absl::Status Put(const Location& at, std::string_view bytes, std::stop_token stop);
  // As Put, in parts, which an upload that fails removes again. `read` returns `bytes` bytes from `offset` on, again
  // and again the same.
  using ReadPart = absl::FunctionRef<absl::StatusOr<std::string>(int64_t offset, int64_t bytes)>;
  absl::Status Upload(const Location& at, int64_t size, ReadPart read, std::stop_token stop);
  // The steps of Upload, for bytes that arrive one after another (object_writer.h). `number`: 1, 2, ... A part but the
  // last has at least 5 MiB for S3.
  absl::StatusOr<StartedUpload> BeginUpload(const Location& at, std::stop_token stop);
  absl::StatusOr<std::string> SendPart(const Location& at, const std::string& id, int number, std::string bytes,
                                       std::stop_token stop);  // its ETag
  absl::Status CompleteUpload(const Location& at, const StartedUpload& upload, const std::vector<std::string>& etags,
                              std::stop_token stop);
  absl::Status EndUpload(const Location& at, const std::string& id, std::stop_token stop);  // OK when it has ended
  // Uploads that were begun and not ended, whose key begins with that of `prefix`. Errors: as List.
  absl::StatusOr<std::vector<ListedUpload>> ListUploads(const Location& prefix, std::stop_token stop);
  // On the server, of at most 5 GiB. Both must be of the same scheme.
  absl::Status Copy(const Location& from, const Location& to, std::stop_token stop);
  absl::Status Remove(const Location& at, std::stop_token stop);  // OK when it does not exist

 private:
  struct Call;
  class Pool;
  absl::StatusOr<http_client::Response> Run(const Location& at, const Call& call, const std::stop_token& stop);
  absl::StatusOr<ObjectInfo> StatOfWeb(const Location& at, const std::stop_token& stop);
  absl::StatusOr<std::vector<std::string>> SendParts(const Location& at, const std::string& id, int64_t size,
                                                     ReadPart read, const std::stop_token& stop);
  uint64_t NextRandom();

  const Settings settings_;
  base::Clock& clock_;
  const Limits limits_;
  const std::unique_ptr<Pool> pool_;
  const Exchange exchange_;
  base::Mutex mutex_;
  base::Rng rng_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::object_store
