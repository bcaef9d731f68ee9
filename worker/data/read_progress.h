// How far the files of a data source are read: a line every few seconds, so that a long read is not taken for a hang.
//
// A file is first read, then its rows are parsed: while the rows of the last file are parsed, all bytes are read.
// Thread-safe. Owned by who loads the data; it outlives the load.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace medley::worker {

// "reading the training data: 345 of 1,500 MB (23 %), 1,200,000 rows"; without `all_bytes` "reading ...: 1,200 rows".
// Pure.
std::string ReadProgressText(const std::string& what, int64_t bytes, int64_t all_bytes, int64_t rows);

class ReadProgress {
 public:
  using Say = std::function<void(const std::string& line)>;

  // Calls `say`, one call at a time and with a lock held, after 5 seconds and then whenever another 5 seconds and a
  // tenth of the time so far have passed: 30 lines in the first hour. A short read says nothing.
  ReadProgress(std::string what, base::Clock& clock, Say say);

  void Expect(int64_t bytes);  // the bytes of the files that will be read, compressed or not
  void Read(int64_t bytes);    // so many more
  void Parsed(int64_t rows);

 private:
  void SayIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string what_;
  base::Clock& clock_;
  const Say say_;
  const base::SteadyTime begin_;
  base::Mutex mutex_;
  base::SteadyTime next_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t all_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t rows_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::worker
