// Lines that are added one after another, in an object store, where nothing can be appended: objects of about 1 MiB, of
// which the last one is written again until it is full.
//
// WRITER-00000001.jsonl, WRITER-00000002.jsonl and so on: each writer has names of its own, so that one that is late
// overwrites nothing of another's, and names of later writers are larger. The lines of all objects in the order of
// their names are what a file would have. Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "worker/checkpoint/files.h"

namespace medley::worker {

class LineObjects {
 public:
  // `writer`: larger than those of earlier writers; it has written nothing there yet.
  LineObjects(Volume volume, std::filesystem::path folder, std::string writer)
      : volume_(std::move(volume)), folder_(std::move(folder)), writer_(std::move(writer)) {}

  // The content of the last object of all writers; "": there is no object. Errors: those of the store.
  absl::StatusOr<std::string> Last() const;
  // Keeps the line in memory, and writes a full object. Errors: ResourceExhausted, when 64 MiB wait for a store that
  // takes none: the line is lost; those of the store: the line waits.
  absl::Status Add(std::string_view line);
  // Writes what waits.
  absl::Status Sync();

 private:
  const Volume volume_;
  const std::filesystem::path folder_;
  const std::string writer_;
  int64_t number_ = 1;  // of the object that is written
  std::string lines_;   // its content
  bool waits_ = false;  // it has lines that are not written
  size_t tried_ = 0;    // bytes of the last try: a full object is not tried with each line
};

}  // namespace medley::worker
