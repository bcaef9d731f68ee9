// What a process of a job uses of object stores: the job's data and models, copied into the cache of its machine.
//
//   MEDLEY_ASSIGN_OR_RETURN(const auto places, Places::Make(get, {.cache = folder}, clock));
//   MEDLEY_RETURN_IF_ERROR(places->CopyModel(spec, stop));   // spec names files of this machine now
//
// Thread-safe. Owner: the process; the copies are kept while it lives.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/model/job_spec.h"
#include "common/object_store/object_store.h"
#include "worker/places/object_cache.h"

namespace medley::worker {

class Places {
 public:
  struct Options {
    std::filesystem::path cache;  // a folder that processes of this machine share
    int64_t cache_bytes = 0;      // 0: half of its file system
    // Called with the number of bytes that were copied since the last call, and with 0 while another process copies.
    std::function<void(int64_t bytes)> on_bytes = {};
  };
  // Reads the variables of common/object_store/README.md and MEDLEY_CACHE_BYTES, which is used where cache_bytes is 0.
  // Errors: InvalidArgument naming the variable. `clock` must outlive it.
  static absl::StatusOr<std::unique_ptr<Places>> Make(const object_store::GetVariable& get, Options options,
                                                      base::Clock& clock);
  // `store` must outlive it.
  Places(Options options, object_store::ObjectStore& store, base::Clock& clock);

  // These copy what lies in an object store and let the spec name the copies, by file:// or a path. What is a file
  // stays. Errors: those of ObjectCache::Fetch, after the name of the field.
  absl::Status CopyModel(model::JobSpec& spec, const std::stop_token& stop);  // spec.model
  absl::Status CopyData(model::DataSpec& data, const std::stop_token& stop);
  // The path, or pattern, of the copy of one address; what is no address of an object store is returned as it is.
  absl::StatusOr<std::string> Copy(const std::string& uri, const std::stop_token& stop);

 private:
  absl::Status CopySource(const std::string& field, model::SourceSpec& source, const std::stop_token& stop);
  absl::Status CopyUri(const std::string& field, std::string& uri, const std::stop_token& stop);

  std::unique_ptr<object_store::ObjectStore> own_;
  const Options options_;
  ObjectCache cache_;
  base::Mutex mutex_;
  std::vector<HeldView> held_ ABSL_GUARDED_BY(mutex_);
};

// Whether a spec names anything in an object store.
bool HasRemotePlaces(const model::JobSpec& spec);

}  // namespace medley::worker
