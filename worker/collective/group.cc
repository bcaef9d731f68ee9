#include "worker/collective/group.h"

#include <gloo/allreduce.h>
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
#include "worker/collective/collective_group.h"
#include "worker/collective/shared_memory_group.h"
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
constexpr uint64_t kCollectiveSlot = uint64_t{0x41} << 56;
constexpr size_t kMaxPendingMessages = 1024;
constexpr size_t kMaxPendingBytes = size_t{256} << 20;

struct PendingSend {
  int to = 0;
  std::vector<std::byte> bytes;
  std::unique_ptr<UnboundBuffer> buffer;
};

// gloo reports errors by exceptions.
template <typename Body>
absl::Status Caught(const Body& body) {
  try {
    body();
    return absl::OkStatus();
  } catch (const std::exception& e) {
    return base::Unavailable("{}", e.what());
  }
}

// The messages of collectives. A send ends when the peer receives.
class GlooMessages final : public Messages {
 public:
  GlooMessages(const GroupOptions& options, gloo::Context* context) : options_(options), context_(context) {}
  int rank() const override { return options_.rank; }
  int size() const override { return static_cast<int>(options_.members.size()); }
  absl::Status Send(int to, std::span<const std::byte> bytes) override {
    return Caught([&] {
      const auto buffer = Buffer(bytes);
      buffer->send(to, kCollectiveSlot);
      WaitSend(*buffer);
    });
  }
  absl::Status Receive(int from, std::span<std::byte> bytes) override {
    return Caught([&] {
      const auto buffer = Buffer(bytes);
      buffer->recv(from, kCollectiveSlot);
      WaitReceive(*buffer);
    });
  }
  absl::Status Exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) override {
    return Caught([&] {
      const auto received = Buffer(in), sent = Buffer(out);
      received->recv(from, kCollectiveSlot);
      sent->send(to, kCollectiveSlot);
      WaitReceive(*received);
      WaitSend(*sent);
    });
  }
  std::span<float> Scratch(size_t count) override { return scratch_.Get(count); }

 private:
  std::unique_ptr<UnboundBuffer> Buffer(std::span<const std::byte> bytes) {
    return context_->createUnboundBuffer(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
  void WaitSend(UnboundBuffer& buffer) {
    if (!buffer.waitSend(options_.timeout)) throw std::runtime_error("the send was aborted");
  }
  void WaitReceive(UnboundBuffer& buffer) {
    if (!buffer.waitRecv(options_.timeout)) throw std::runtime_error("the receive was aborted");
  }

  const GroupOptions& options_;
  gloo::Context* const context_;
  ScratchMemory scratch_;
};

class GlooGroup final : public CollectiveGroup {
 public:
  GlooGroup(GroupOptions given, std::shared_ptr<gloo::Context> context)
      : CollectiveGroup(std::move(given)), context_(std::move(context)), messages_(options(), context_.get()) {}
  ~GlooGroup() override { Close("the group is destroyed"); }

  absl::Status Send(int to, uint64_t tag, std::span<const std::byte> bytes) override;
  absl::Status Recv(int from, uint64_t tag, std::span<std::byte> bytes) override;
  absl::Status Flush() override;
  void Close(std::string_view why) override;

 private:
  Messages& messages() override { return messages_; }
  absl::Status Guarded(const std::string& what, absl::FunctionRef<absl::Status()> body) override;
  absl::Status Sum(std::span<float> values, model::AllreduceAlgorithm algorithm) override;
  absl::Status Closed(const std::string& what) ABSL_LOCKS_EXCLUDED(close_mutex_);
  void WaitOldest(std::deque<PendingSend>& done);

  const std::shared_ptr<gloo::Context> context_;
  GlooMessages messages_;
  base::Mutex send_mutex_;
  std::deque<PendingSend> pending_ ABSL_GUARDED_BY(send_mutex_);
  size_t pending_bytes_ ABSL_GUARDED_BY(send_mutex_) = 0;
  base::Mutex close_mutex_;
  bool closed_ ABSL_GUARDED_BY(close_mutex_) = false;
  std::string why_ ABSL_GUARDED_BY(close_mutex_);
};

absl::Status GlooGroup::Closed(const std::string& what) {
  base::MutexLock lock(close_mutex_);
  if (!closed_) return absl::OkStatus();
  return base::Aborted("{}: group {} is closed: {}", what, options().name, why_);
}

absl::Status GlooGroup::Guarded(const std::string& what, absl::FunctionRef<absl::Status()> body) {
  MEDLEY_RETURN_IF_ERROR(Closed(what));
  const absl::Status status = body();
  if (status.ok()) return status;
  MEDLEY_RETURN_IF_ERROR(Closed(what));
  Close(fmt::format("{} failed: {}", what, base::Message(status)));
  return base::Unavailable("{} in group {}: {}", what, options().name, base::Message(status));
}

// gloo's ring overlaps sums with messages.
absl::Status GlooGroup::Sum(std::span<float> values, model::AllreduceAlgorithm algorithm) {
  using model::AllreduceAlgorithm;
  if (algorithm != AllreduceAlgorithm::kAuto && algorithm != AllreduceAlgorithm::kRing) {
    return SumOver(messages_, values, algorithm);
  }
  return Caught([&] {
    gloo::AllreduceOptions ring(context_);
    ring.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    ring.setOutput(values.data(), values.size());
    ring.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    ring.setTimeout(options().timeout);
    gloo::allreduce(ring);
  });
}

void GlooGroup::WaitOldest(std::deque<PendingSend>& done) {
  for (PendingSend& send : done) {
    if (!send.buffer->waitSend(options().timeout)) throw std::runtime_error("the send was aborted");
  }
}

absl::Status GlooGroup::Send(int to, uint64_t tag, std::span<const std::byte> bytes) {
  MEDLEY_RETURN_IF_ERROR(CheckPeer(to));
  return Guarded("send to " + Name(to), [&] {
    return Caught([&] {
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
  });
}

absl::Status GlooGroup::Recv(int from, uint64_t tag, std::span<std::byte> bytes) {
  MEDLEY_RETURN_IF_ERROR(CheckPeer(from));
  return Guarded("receive from " + Name(from), [&] {
    return Caught([&] {
      const auto buffer = context_->createUnboundBuffer(bytes.data(), bytes.size());
      buffer->recv(from, kUserSlots | tag);
      if (!buffer->waitRecv(options().timeout)) throw std::runtime_error("the receive was aborted");
    });
  });
}

absl::Status GlooGroup::Flush() {
  return Guarded("flush", [&] {
    return Caught([&] {
      std::deque<PendingSend> all;
      {
        base::MutexLock lock(send_mutex_);
        all.swap(pending_);
        pending_bytes_ = 0;
      }
      WaitOldest(all);
    });
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

absl::StatusOr<std::unique_ptr<Group>> ConnectGloo(const GroupOptions& options, KeyValueStore& store,
                                                   std::stop_token stop) {
  try {
    auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(options.address.c_str()));
    auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, static_cast<int>(options.members.size()));
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

}  // namespace

absl::StatusOr<std::unique_ptr<Group>> Group::Connect(const GroupOptions& options, KeyValueStore& store,
                                                      std::stop_token stop) {
  const int size = static_cast<int>(options.members.size());
  if (size == 0 || options.rank < 0 || options.rank >= size) {
    return base::InvalidArgument("group {}: rank {} does not exist among {} members", options.name, options.rank, size);
  }
  if (size == 1) return std::make_unique<GlooGroup>(options, nullptr);
  auto group = options.tls.has_value() ? ConnectTlsGroup(options, store, stop) : ConnectGloo(options, store, stop);
  if (!group.ok() || !options.share_memory) return group;
  return ShareMemory(*std::move(group), options, std::move(stop));
}

}  // namespace medley::worker
