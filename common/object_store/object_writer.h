// Writes one object whose bytes arrive one after another and whose length is not known before, in bounded memory.
//
//   ObjectWriter writer(store, at);
//   MEDLEY_RETURN_IF_ERROR(writer.Add(bytes, stop));   // again and again
//   MEDLEY_RETURN_IF_ERROR(writer.Finish(stop));       // now the object exists; before, nobody sees anything
//
// The first bytes wait in memory until they are more than a part; then an upload in parts begins. Not thread-safe.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/object_store/object_store.h"

namespace medley::object_store {

class ObjectWriter {
 public:
  // `store` must outlive it.
  ObjectWriter(ObjectStore& store, Location at) : store_(store), at_(std::move(at)) {}
  // Ends an upload that is not finished, best effort: a process that is killed leaves it to ObjectStore::ListUploads.
  ~ObjectWriter();
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  // Sends what fills a part. Errors: those of ObjectStore; OutOfRange (more than 10,000 parts, about 5 TiB).
  absl::Status Add(std::string_view bytes, std::stop_token stop);
  // Call once. After an error the object may exist nevertheless, when only the answer was lost.
  absl::Status Finish(std::stop_token stop);

  const Location& at() const { return at_; }
  // How large the part with this number is, from 1 on: parts grow, so that 10,000 of them hold the largest object.
  static int64_t PartBytes(int64_t piece, size_t number);

 private:
  absl::Status Send(std::stop_token stop);

  ObjectStore& store_;
  const Location at_;
  std::string part_;  // at most PartBytes
  std::optional<StartedUpload> upload_;
  std::vector<std::string> etags_;
};

}  // namespace medley::object_store
