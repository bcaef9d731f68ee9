#include "worker/data/sample_windows.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace medley::worker {
namespace {

std::array<int, 4> WidthsOf(const SampleFile& file) {
  return {file.shape().fields, file.shape().numerics, file.shape().labels, file.weights() ? 1 : 0};
}

bool Has(unsigned parts, size_t list) { return (parts >> list & 1U) != 0; }

// Calls `use` with the number and the values of each list of the batches.
template <typename Use, typename... Batches>
void ForLists(const Use& use, Batches&... batches) {
  use(size_t{0}, batches.ids...);
  use(size_t{1}, batches.numerics...);
  use(size_t{2}, batches.labels...);
  use(size_t{3}, batches.weights...);
}

// Makes place for so many samples.
void Resize(Batch& batch, const std::array<int, 4>& widths, const SampleShape& shape, int64_t samples) {
  batch.shape = shape;
  batch.samples = static_cast<int>(samples);
  ForLists([&](size_t list,
               auto& values) { values.resize(static_cast<size_t>(samples) * static_cast<size_t>(widths[list])); },
           batch);
}

}  // namespace

SampleWindows::SampleWindows(std::shared_ptr<const SampleFile> file, RowSet set, int threads)
    : file_(std::move(file)), set_(set), thread_count_(static_cast<size_t>(std::max(1, threads))) {}

SampleWindows::~SampleWindows() {
  base::MutexLock lock(gathering_);
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

int64_t SampleWindows::kept_bytes() const {
  base::MutexLock lock(mutex_);
  int64_t bytes = 0;
  for (const Window& window : windows_) {
    ForLists([&](size_t, const auto& values) { bytes += static_cast<int64_t>(values.capacity() * sizeof(values[0])); },
             window.samples);
  }
  return bytes;
}

// The window that is needed first has the smaller number of the order, but for that of the next data epoch.
SampleWindows::Window* SampleWindows::Unread() {
  Window* first = nullptr;
  for (Window& window : windows_) {
    if (!window.key || !window.status.ok() || window.next == window.key->order.BlocksIn(window.key->window)) continue;
    const auto place = [](const Key& key) { return std::pair(key.order.data_epoch(), key.window); };
    if (first == nullptr || place(*window.key) < place(*first->key)) first = &window;
  }
  return first;
}

void SampleWindows::Run(const std::stop_token& stop) {
  base::MutexLock lock(mutex_);
  while (changed_.Wait(mutex_, stop, [this] { return Unread() != nullptr; })) {
    Window& window = *Unread();
    const Key key = *window.key;
    const SampleOrder::Block block = key.order.BlockIn(key.window, window.next++);
    ++window.reading;
    mutex_.unlock();
    const absl::Status read = ReadBlock(key, block, window.samples);
    mutex_.lock();
    --window.reading;
    ++window.read;
    if (!read.ok()) {
      window.status = read;
      damaged_ = true;
    }
    changed_.NotifyAll();
  }
}

absl::Status SampleWindows::ReadBlock(const Key& key, const SampleOrder::Block& block, Batch& samples) const {
  const std::array<int, 4> widths = WidthsOf(*file_);
  absl::Status status;
  ForLists(
      [&](size_t list, auto& values) {
        if (!status.ok() || !Has(key.parts, list)) return;
        const auto width = static_cast<size_t>(widths[list]);
        const auto of_block = std::span(values).subspan(static_cast<size_t>(block.first) * width,
                                                        static_cast<size_t>(block.samples) * width);
        status = file_->ReadBlock(set_, list, block.number,
                                  {reinterpret_cast<char*>(of_block.data()), of_block.size_bytes()});
      },
      samples);
  return status;
}

absl::StatusOr<SampleWindows::Window*> SampleWindows::Keep(const Key& key, const Window* kept,
                                                           const std::stop_token& stop) {
  Window* other = nullptr;
  for (Window& window : windows_) {
    if (window.key && window.key->Is(key) && window.status.ok()) return &window;
    if (&window != kept) other = &window;
  }
  other->key.reset();  // nothing more of it is read
  if (!changed_.Wait(mutex_, stop, [&] { return other->reading == 0; })) {
    return base::Cancelled("reading samples was stopped");
  }
  std::array<int, 4> widths = WidthsOf(*file_);
  for (size_t list = 0; list < widths.size(); ++list) widths[list] *= Has(key.parts, list) ? 1 : 0;
  Resize(other->samples, widths, file_->shape(), key.order.SamplesIn(key.window));
  other->key = key;
  other->next = other->read = 0;
  other->status = absl::OkStatus();
  changed_.NotifyAll();
  return other;
}

absl::StatusOr<const SampleWindows::Window*> SampleWindows::Await(const Key& key, const std::stop_token& stop) {
  const bool last = key.window + 1 == key.order.windows();
  const Key next{last ? key.order.Next() : key.order, last ? 0 : key.window + 1, key.parts};
  base::MutexLock lock(mutex_);
  const Window* following = nullptr;  // it would be given up first, although it is needed soon
  for (const Window& window : windows_) {
    if (window.key && window.key->Is(next)) following = &window;
  }
  MEDLEY_ASSIGN_OR_RETURN(Window* const window, Keep(key, following, stop));
  MEDLEY_RETURN_IF_ERROR(Keep(next, window, stop).status());
  const auto ready = [&] {
    return !window->status.ok() ? window->reading == 0 : window->read == key.order.BlocksIn(key.window);
  };
  if (!changed_.Wait(mutex_, stop, ready)) return base::Cancelled("reading samples was stopped");
  MEDLEY_RETURN_IF_ERROR(window->status);
  return window;
}

absl::Status SampleWindows::Gather(const SampleOrder& order, std::span<const int64_t> positions, unsigned parts,
                                   const std::stop_token& stop, Batch& batch) {
  base::MutexLock lock(gathering_);
  while (threads_.size() < thread_count_) {
    threads_.emplace_back([this](const std::stop_token& end) { Run(end); });
  }
  const std::array<int, 4> widths = WidthsOf(*file_);
  Resize(batch, widths, file_->shape(), static_cast<int64_t>(positions.size()));
  if (parts == kNoParts) return absl::OkStatus();
  places_.clear();
  by_window_.clear();
  for (const int64_t position : positions) {
    by_window_.push_back(places_.size());
    places_.push_back(order.PlaceOf(position));
  }
  // Nearly always they are of one window, or of two.
  std::ranges::stable_sort(by_window_, {}, [&](size_t i) { return places_[i].window; });
  for (auto begin = by_window_.begin(); begin != by_window_.end();) {
    const int64_t number = places_[*begin].window;
    const auto end = std::find_if(begin, by_window_.end(), [&](size_t i) { return places_[i].window != number; });
    MEDLEY_ASSIGN_OR_RETURN(const Window* const window, Await({order, number, parts}, stop));
    ForLists(
        [&](size_t list, auto& to, const auto& from) {
          if (!Has(parts, list)) return;
          const auto width = static_cast<size_t>(widths[list]);
          for (auto i = begin; i != end; ++i) {
            std::copy_n(from.data() + static_cast<size_t>(places_[*i].index) * width, width, to.data() + *i * width);
          }
        },
        batch, window->samples);
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
