#include "worker/collective/group.h"

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/collective/tls_group.h"

namespace medley::worker {
namespace {

using gloo::transport::UnboundBuffer;

// gloo reports errors by exceptions: StoreError carries the store's status through gloo's frames to Group::Connect.
struct StoreError : std::runtime_error {
  explicit StoreError(absl::Status s) : std::runtime_error(base::Message(s)), status(std::move(s)) {}
  absl::Status status;
};

class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(KeyValueStore& store, std::string prefix, base::milliseconds timeout, std::stop_token stop)
      : store_(store), prefix_(std::move(prefix)), timeout_(timeout), stop_(std::move(stop)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const absl::Status status = store_.Put(prefix_ + key, std::string(data.begin(), data.end()));
    if (!status.ok()) throw StoreError(status);
  }
  std::vector<char> get(const std::string& key) override {
    const auto values = store_.Get({prefix_ + key}, timeout_, stop_);
    if (!values.ok()) throw StoreError(values.status());
    return {values->front().begin(), values->front().end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    std::vector<std::string> full;
    for (const std::string& key : keys) full.push_back(prefix_ + key);
    const auto values = store_.Get(full, timeout_, stop_);
    if (!values.ok()) throw StoreError(values.status());
  }

 private:
  KeyValueStore& store_;
  const std::string prefix_;
  const base::milliseconds timeout_;
  const std::stop_token stop_;
};

// The top byte of gloo's 64-bit slot separates these messages from those of gloo's collectives, which use 1 to 8.
constexpr uint64_t kUserSlots = uint64_t{0x40} << 56;
constexpr uint64_t kRelaySlot = uint64_t{0x41} << 56;
constexpr size_t kMaxPendingMessages = 1024;
constexpr size_t kMaxPendingBytes = size_t{256} << 20;

struct PendingSend {
  int to = 0;
  std::vector<std::byte> bytes;
  std::unique_ptr<UnboundBuffer> buffer;
};

class GlooGroup final : public Group {
 public:
  GlooGroup(GroupOptions options, std::shared_ptr<gloo::Context> context)
      : options_(std::move(options)), context_(std::move(context)) {}
  ~GlooGroup() override { Close("the group is destroyed"); }

  int rank() const override { return options_.rank; }
  int size() const override { return static_cast<int>(options_.members.size()); }
  absl::Status AllreduceSum(std::span<float> values, model::AllreduceAlgorithm algorithm) override;
  absl::Status Broadcast(std::span<std::byte> bytes, int root) override;
  absl::Status Barrier() override;
  absl::Status Send(int to, uint64_t tag, std::span<const std::byte> bytes) override;
  absl::Status Recv(int from, uint64_t tag, std::span<std::byte> bytes) override;
  absl::Status Flush() override;
  void Close(std::string_view why) override;

 private:
  // Runs `body`, which may throw gloo's exceptions; an exception closes the group and becomes a status.
  template <typename Body>
  absl::Status Guarded(std::string_view what, const Body& body);
  absl::Status CheckPeer(int peer) const;
  void SendRaw(int to, uint64_t slot, std::span<float> values);
  void RecvRaw(int from, uint64_t slot, std::span<float> values);
  void SumCentralized(std::span<float> values);
  void SumLinear(std::span<float> values);
  void GlooAllreduce(std::span<float> values, gloo::AllreduceOptions::Algorithm algorithm);
  void GlooBroadcast(std::span<std::byte> bytes, int root);
  void WaitOldest(std::deque<PendingSend>& done);

  const GroupOptions options_;
  const std::shared_ptr<gloo::Context> context_;
  base::Mutex send_mutex_;
  std::deque<PendingSend> pending_ ABSL_GUARDED_BY(send_mutex_);
  size_t pending_bytes_ ABSL_GUARDED_BY(send_mutex_) = 0;
  base::Mutex close_mutex_;
  bool closed_ ABSL_GUARDED_BY(close_mutex_) = false;
  std::string why_ ABSL_GUARDED_BY(close_mutex_);
};

template <typename Body>
absl::Status GlooGroup::Guarded(std::string_view what, const Body& body) {
  {
    base::MutexLock lock(close_mutex_);
    if (closed_) return base::Aborted("{}: group {} is closed: {}", what, options_.name, why_);
  }
  std::string cause;
  try {
    body();
    return absl::OkStatus();
  } catch (const std::exception& e) {
    cause = e.what();
  }
  {
    base::MutexLock lock(close_mutex_);
    if (closed_) return base::Aborted("{}: group {} is closed: {}", what, options_.name, why_);
  }
  Close(fmt::format("{} failed: {}", what, cause));
  return base::Unavailable("{} in group {}: {}", what, options_.name, cause);
}

absl::Status GlooGroup::CheckPeer(int peer) const {
  if (peer < 0 || peer >= size() || peer == rank()) {
    return base::InvalidArgument("group {}: rank {} is not a peer of rank {} of {}", options_.name, peer, rank(),
                                 size());
  }
  return absl::OkStatus();
}

absl::Status GlooGroup::AllreduceSum(std::span<float> values, model::AllreduceAlgorithm algorithm) {
  if (size() == 1 || values.empty()) return absl::OkStatus();
  using model::AllreduceAlgorithm;
  return Guarded(fmt::format("allreduce of {} values", values.size()), [&] {
    switch (algorithm) {
      case AllreduceAlgorithm::kAuto:
      case AllreduceAlgorithm::kRing:
        return GlooAllreduce(values, gloo::AllreduceOptions::Algorithm::RING);
      case AllreduceAlgorithm::kRecursiveDoubling:
        return GlooAllreduce(values, gloo::AllreduceOptions::Algorithm::BCUBE);
      case AllreduceAlgorithm::kCentralized:
        return SumCentralized(values);
      case AllreduceAlgorithm::kLinear:
        return SumLinear(values);
    }
  });
}

void GlooGroup::GlooAllreduce(std::span<float> values, gloo::AllreduceOptions::Algorithm algorithm) {
  gloo::AllreduceOptions options(context_);
  options.setAlgorithm(algorithm);
  options.setOutput(values.data(), values.size());
  options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
  options.setTimeout(options_.timeout);
  gloo::allreduce(options);
}

void GlooGroup::SumCentralized(std::span<float> values) {
  if (rank() == 0) {
    std::vector<float> other(values.size());
    for (int from = 1; from < size(); ++from) {
      RecvRaw(from, kRelaySlot, other);
      for (size_t i = 0; i < values.size(); ++i) values[i] += other[i];
    }
  } else {
    SendRaw(0, kRelaySlot, values);
  }
  GlooBroadcast(std::as_writable_bytes(values), 0);
}

void GlooGroup::SumLinear(std::span<float> values) {
  const int last = size() - 1;
  if (rank() > 0) {
    std::vector<float> sum(values.size());
    RecvRaw(rank() - 1, kRelaySlot, sum);
    for (size_t i = 0; i < values.size(); ++i) values[i] += sum[i];
  }
  if (rank() < last) {
    SendRaw(rank() + 1, kRelaySlot, values);
    RecvRaw(rank() + 1, kRelaySlot + 1, values);
  }
  if (rank() > 0) SendRaw(rank() - 1, kRelaySlot + 1, values);
}

void GlooGroup::SendRaw(int to, uint64_t slot, std::span<float> values) {
  const auto buffer = context_->createUnboundBuffer(values.data(), values.size_bytes());
  buffer->send(to, slot);
  if (!buffer->waitSend(options_.timeout)) throw std::runtime_error("the send was aborted");
}

void GlooGroup::RecvRaw(int from, uint64_t slot, std::span<float> values) {
  const auto buffer = context_->createUnboundBuffer(values.data(), values.size_bytes());
  buffer->recv(from, slot);
  if (!buffer->waitRecv(options_.timeout)) throw std::runtime_error("the receive was aborted");
}

absl::Status GlooGroup::Broadcast(std::span<std::byte> bytes, int root) {
  if (root < 0 || root >= size())
    return base::InvalidArgument("broadcast from rank {}, but the group has {} ranks", root, size());
  if (size() == 1 || bytes.empty()) return absl::OkStatus();
  return Guarded(fmt::format("broadcast from {}", options_.members[static_cast<size_t>(root)]),
                 [&] { GlooBroadcast(bytes, root); });
}

void GlooGroup::GlooBroadcast(std::span<std::byte> bytes, int root) {
  gloo::BroadcastOptions options(context_);
  options.setOutput(reinterpret_cast<char*>(bytes.data()), bytes.size());
  options.setRoot(root);
  options.setTimeout(options_.timeout);
  gloo::broadcast(options);
}

absl::Status GlooGroup::Barrier() {
  if (size() == 1) return absl::OkStatus();
  return Guarded("barrier", [&] {
    gloo::BarrierOptions options(context_);
    options.setTimeout(options_.timeout);
    gloo::barrier(options);
  });
}

void GlooGroup::WaitOldest(std::deque<PendingSend>& done) {
  for (PendingSend& send : done) {
    if (!send.buffer->waitSend(options_.timeout)) throw std::runtime_error("the send was aborted");
  }
}

absl::Status GlooGroup::Send(int to, uint64_t tag, std::span<const std::byte> bytes) {
  MEDLEY_RETURN_IF_ERROR(CheckPeer(to));
  return Guarded(fmt::format("send to {}", options_.members[static_cast<size_t>(to)]), [&] {
    std::deque<PendingSend> oldest;  // taken out of pending_, so that the wait does not hold the lock
    {
      base::MutexLock lock(send_mutex_);
      while (!pending_.empty() &&
             (pending_.size() >= kMaxPendingMessages || pending_bytes_ + bytes.size() > kMaxPendingBytes)) {
        pending_bytes_ -= pending_.front().bytes.size();
        oldest.push_back(std::move(pending_.front()));
        pending_.pop_front();
      }
    }
    WaitOldest(oldest);
    PendingSend send{to, {bytes.begin(), bytes.end()}, nullptr};
    send.buffer = context_->createUnboundBuffer(send.bytes.data(), send.bytes.size());
    send.buffer->send(to, kUserSlots | tag);
    base::MutexLock lock(send_mutex_);
    pending_bytes_ += send.bytes.size();
    pending_.push_back(std::move(send));
  });
}

absl::Status GlooGroup::Recv(int from, uint64_t tag, std::span<std::byte> bytes) {
  MEDLEY_RETURN_IF_ERROR(CheckPeer(from));
  return Guarded(fmt::format("receive from {}", options_.members[static_cast<size_t>(from)]), [&] {
    const auto buffer = context_->createUnboundBuffer(bytes.data(), bytes.size());
    buffer->recv(from, kUserSlots | tag);
    if (!buffer->waitRecv(options_.timeout)) throw std::runtime_error("the receive was aborted");
  });
}

absl::Status GlooGroup::Flush() {
  return Guarded("flush", [&] {
    std::deque<PendingSend> all;
    {
      base::MutexLock lock(send_mutex_);
      all.swap(pending_);
      pending_bytes_ = 0;
    }
    WaitOldest(all);
  });
}

void GlooGroup::Close(std::string_view why) {
  {
    base::MutexLock lock(close_mutex_);
    if (closed_) return;
    closed_ = true;
    why_ = why;
  }
  if (context_ == nullptr) return;
  // closeConnections() alone would leave local waiters waiting until their timeout. When a receive times out, gloo
  // fails every pending operation of the context and closes its pairs, so let one time out.
  try {
    char nothing = 0;
    context_->createUnboundBuffer(&nothing, 1)->waitRecv(base::milliseconds(1));
  } catch (const std::exception&) {
    // Expected: the timeout wakes the waiters.
  }
  context_->closeConnections();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Group>> Group::Connect(const GroupOptions& options, KeyValueStore& store,
                                                      std::stop_token stop) {
  const int size = static_cast<int>(options.members.size());
  if (size == 0 || options.rank < 0 || options.rank >= size) {
    return base::InvalidArgument("group {}: rank {} does not exist among {} members", options.name, options.rank, size);
  }
  if (size == 1) return std::make_unique<GlooGroup>(options, nullptr);
  if (options.tls.has_value()) return ConnectTlsGroup(options, store, std::move(stop));
  try {
    auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(options.address.c_str()));
    auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, size);
    context->setTimeout(options.connect_timeout / 5);  // gloo waits five times its timeout for a connection
    GlooStore gloo_store(store, options.name + "/", options.rendezvous_timeout, std::move(stop));
    context->connectFullMesh(gloo_store, device);
    context->setTimeout(options.timeout);
    return std::make_unique<GlooGroup>(options, std::move(context));
  } catch (const StoreError& e) {
    return base::Annotate(e.status, fmt::format("connecting group {}", options.name));
  } catch (const std::exception& e) {
    return base::Unavailable("connecting group {} at {}: {}", options.name, options.address, e.what());
  }
}

}  // namespace medley::worker
