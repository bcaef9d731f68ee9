// One call of an object store, before it is signed. Internal to common/object_store.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/http_client/connection.h"
#include "common/object_store/object_store.h"
#include "common/object_store/request.h"

namespace medley::object_store {

struct ObjectStore::Call {
  std::string what;  // for sentences
  RequestParts parts;
  int64_t answer_bytes = 0;  // of the object that is read; 0: the answer is a text
  // Whether a response that is no success is what the caller wants.
  std::function<bool(const http_client::Response&)> takes = {};
  // What is wrong with a success; Unavailable is tried again.
  std::function<absl::Status(const http_client::Response&)> check = {};
};

}  // namespace medley::object_store
