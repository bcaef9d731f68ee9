// An object store in memory, for tests: it answers requests as S3 does, with faults that a test asks for.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/url.h"
#include "common/object_store/object_store.h"

namespace medley::worker {

// Thread-safe.
class FakeStore {
 public:
  object_store::Exchange exchange();

  void Put(const std::string& key, std::string bytes);  // "bucket/key"
  std::vector<std::string> Keys() const;
  std::string Get(const std::string& key) const;
  void Remove(const std::string& key);
  int reads() const;  // ranges that were answered

  // Each request for which this returns a code other than 0 is answered by it.
  std::function<int(const http_client::Request&)> fault;

 private:
  http_client::Result Answer(const http_client::Request& request);
  http_client::Result List(const std::string& bucket, const base::QueryFields& query);
  http_client::Result ListUploads(const std::string& bucket, const base::QueryFields& query);
  http_client::Result Change(const http_client::Request& request, const std::string& key,
                             const base::QueryFields& query);

  struct Object {
    std::string bytes, etag, mark;
  };
  mutable base::Mutex mutex_;
  std::map<std::string, Object> objects_;
  struct Upload {
    std::string key, mark;
    std::map<int, std::string> parts;
  };
  std::map<std::string, Upload> uploads_;  // by id
  int reads_ = 0;
  int next_ = 0;
};

}  // namespace medley::worker
