// Keeps copies of objects in a folder of this machine, which its processes share, under a budget of bytes.
//
//   objects/ID        one state of an object; ID is a hash of its place, name, ETag and length
//   objects/ID.part   while it is copied; has its final length from the start
//   objects/ID.lock   locked by the process that copies it
//   views/ID/s3:/bucket/key   links to objects: what one address meant at one time, under names that a reader knows
//   views/ID.lock     locked in common by the processes that read the view
//   room.lock         locked while room is made
//
// An object appears under its name when it is complete and on disk, so a process that is killed leaves nothing that
// another one would read. Locks are the kernel's, which ends them with the process. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/object_store/object_store.h"
#include "worker/places/find_objects.h"

namespace medley::worker {

// Holds the files of a view: none of them is removed while it lives. Move-only.
class HeldView {
 public:
  HeldView(std::filesystem::path folder, int lock) : folder_(std::move(folder)), lock_(lock) {}
  HeldView(HeldView&& other) noexcept : folder_(std::move(other.folder_)), lock_(std::exchange(other.lock_, -1)) {}
  HeldView& operator=(HeldView&&) = delete;
  ~HeldView();

  // Where the object is, or a pattern of the same form: "VIEW/s3:/bucket/train/*.csv".
  std::filesystem::path PathOf(const object_store::Location& at) const;

 private:
  std::filesystem::path folder_;
  int lock_;
};

class ObjectCache {
 public:
  struct Options {
    std::filesystem::path folder;
    int64_t most_bytes = 0;  // of all objects; 0: half of the file system
    int threads = 4;         // that copy one object
  };
  // `store` and `clock` must outlive it.
  ObjectCache(Options options, object_store::ObjectStore& store, base::Clock& clock)
      : options_(std::move(options)), store_(store), clock_(clock) {}

  // Copies what is not here yet. `on_bytes` is called with the number of bytes that were copied since the last call,
  // and with 0 while another process copies. Errors: those of FindObjects and of reading objects; ResourceExhausted
  // when the budget or the disk has no room; those of the file system; Cancelled.
  absl::StatusOr<HeldView> Fetch(const std::string& uri, const std::stop_token& stop,
                                 const std::function<void(int64_t bytes)>& on_bytes);

 private:
  using OnBytes = std::function<void(int64_t bytes)>;
  absl::Status Build(const std::vector<FoundObject>& found, const std::filesystem::path& view,
                     const std::stop_token& stop, const OnBytes& on_bytes);
  absl::Status Ensure(const FoundObject& object, const std::string& id, const std::stop_token& stop,
                      const OnBytes& on_bytes);
  absl::StatusOr<int> Reserve(const FoundObject& object, const std::filesystem::path& part,
                              const std::stop_token& stop);
  absl::Status Copy(const FoundObject& object, int fd, const std::stop_token& stop, const OnBytes& on_bytes);

  const Options options_;
  object_store::ObjectStore& store_;
  base::Clock& clock_;
};

}  // namespace medley::worker
