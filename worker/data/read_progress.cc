#include "worker/data/read_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace medley::worker {
namespace {

constexpr base::nanoseconds kInterval = base::seconds(5);

// With commas between the thousands.
std::string Thousands(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

std::string Megabytes(int64_t bytes) {
  return bytes < 10'000'000 ? fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6) : Thousands(bytes / 1'000'000);
}

}  // namespace

std::string ReadProgressText(const std::string& what, int64_t bytes, int64_t all_bytes, int64_t rows) {
  std::string text = "reading " + what + ": ";
  if (all_bytes > 0) {
    const int64_t done = std::min(bytes, all_bytes);  // a file may grow while it is read
    text += fmt::format("{} of {} MB ({:.0f} %), ", Megabytes(done), Megabytes(all_bytes),
                        100 * static_cast<double>(done) / static_cast<double>(all_bytes));
  }
  return text + Thousands(rows) + (rows == 1 ? " row" : " rows");
}

ReadProgress::ReadProgress(std::string what, base::Clock& clock, Say say)
    : what_(std::move(what)), clock_(clock), say_(std::move(say)), begin_(clock.Steady()), next_(begin_ + kInterval) {}

void ReadProgress::Expect(int64_t bytes) {
  const base::MutexLock lock(mutex_);
  all_bytes_ += bytes;
}

void ReadProgress::Read(int64_t bytes) {
  const base::MutexLock lock(mutex_);
  bytes_ += bytes;
  SayIfDue();
}

void ReadProgress::Parsed(int64_t rows) {
  const base::MutexLock lock(mutex_);
  rows_ += rows;
  SayIfDue();
}

void ReadProgress::SayIfDue() {
  const base::SteadyTime now = clock_.Steady();
  if (now < next_) return;
  next_ = now + kInterval + (now - begin_) / 10;
  say_(ReadProgressText(what_, bytes_, all_bytes_, rows_));
}

}  // namespace medley::worker
