#include "worker/collective/mesh_group.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/collective/collective_group.h"
#include "worker/collective/mesh.h"
#include "worker/collective/mesh_peer.h"

namespace medley::worker {
namespace {

// A peer that leaves within a message has not left in order.
absl::Status Whole(absl::Status read) {
  return absl::IsOutOfRange(read) ? base::Unavailable("{}", base::Message(read)) : read;
}

class MeshGroup final : public CollectiveGroup {
 public:
  MeshGroup(GroupOptions given, std::vector<std::unique_ptr<PeerStream>> streams)
      : CollectiveGroup(std::move(given)), peers_(options().members.size()) {
    for (size_t i = 0; i < peers_.size(); ++i) peers_[i].stream = std::move(streams[i]);
  }
  // ResourceExhausted: the system gives this process no more threads.
  absl::Status Start() {
    try {
      for (size_t i = 0; i < peers_.size(); ++i) {
        if (peers_[i].stream == nullptr) continue;
        threads_.emplace_back([this, i] { Read(i); });
        threads_.emplace_back([this, i] { Write(i); });
      }
    } catch (const std::system_error& error) {
      CloseFor(error.what());
      return base::ResourceExhausted("starting two threads for each of {} peers: {}", peers_.size() - 1, error.what());
    }
    return absl::OkStatus();
  }
  ~MeshGroup() override {
    Leave();
    threads_.clear();  // joins them
  }

  absl::Status Send(int to, uint64_t tag, std::span<const std::byte> bytes) override;
  absl::Status Recv(int from, uint64_t tag, std::span<std::byte> bytes) override {
    MEDLEY_RETURN_IF_ERROR(CheckPeer(from));
    return Ended("receive from " + Name(from), ReceiveMessage(from, kUserTags | tag, bytes));
  }
  absl::Status Flush() override;
  void Close(std::string_view why) override {
    {
      base::MutexLock lock(mutex_);
      reported_ = true;  // who closes the group knows
    }
    CloseFor(why);
  }

 private:
  // Those of collectives; they are written in the caller's thread.
  class CollectiveMessages final : public Messages {
   public:
    explicit CollectiveMessages(MeshGroup& group) : group_(group) {}
    int rank() const override { return group_.rank(); }
    int size() const override { return group_.size(); }
    absl::Status Send(int to, std::span<const std::byte> bytes) override { return group_.WriteCollective(to, bytes); }
    absl::Status Receive(int from, std::span<std::byte> bytes) override {
      return group_.ReceiveMessage(from, kCollectiveTag, bytes);
    }
    absl::Status Exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) override {
      MessageReceiver receiver{in};
      MEDLEY_RETURN_IF_ERROR(group_.Begin(from, kCollectiveTag, receiver));
      const absl::Status written = group_.WriteCollective(to, out);
      const absl::Status received =
          group_.End(from, kCollectiveTag, receiver, written.ok() ? group_.options().timeout : base::milliseconds(0));
      return written.ok() ? received : written;
    }
    std::span<float> Scratch(size_t count) override { return scratch_.Get(count); }

   private:
    MeshGroup& group_;
    ScratchMemory scratch_;
  };

  Messages& messages() override { return messages_; }
  absl::Status Guarded(const std::string& what, absl::FunctionRef<absl::Status()> body) override {
    return Ended(what, body());
  }
  MeshPeer& At(int rank) { return peers_[static_cast<size_t>(rank)]; }

  absl::Status WriteCollective(int to, std::span<const std::byte> bytes) {
    const Patience patience{base::SystemClock().Steady() + options().timeout, {}};
    return WriteMessage(At(to), kCollectiveTag, bytes, &patience);
  }
  static absl::Status WriteMessage(MeshPeer& peer, uint64_t tag, std::span<const std::byte> bytes,
                                   const Patience* patience) {
    const size_t first = std::min(bytes.size(), kRecord - sizeof(MessageHeader));
    base::MutexLock lock(peer.write_mutex);
    Pack(tag, bytes.size(), bytes.first(first), peer.first_record);
    MEDLEY_RETURN_IF_ERROR(peer.stream->Write(peer.first_record, patience));
    return peer.stream->Write(bytes.subspan(first), patience);
  }
  absl::Status ReceiveMessage(int from, uint64_t tag, std::span<std::byte> bytes) {
    MessageReceiver receiver{bytes};
    MEDLEY_RETURN_IF_ERROR(Begin(from, tag, receiver));
    return End(from, tag, receiver, options().timeout);
  }
  // Gives the receiver the message that has arrived, or registers it for the one that will. After an error it is not
  // registered.
  absl::Status Begin(int from, uint64_t tag, MessageReceiver& receiver);
  // Waits for the message, for `patience` at most. The receiver is not registered any more.
  absl::Status End(int from, uint64_t tag, MessageReceiver& receiver, base::nanoseconds patience);
  // The error of a call: of one that failed first, the group's end; of later ones, why it is closed.
  absl::Status Ended(const std::string& what, absl::Status status);
  // Ends the connections, running calls and later ones.
  void CloseFor(std::string_view why);
  // Ends the connections so that the others, which may still need one another, lose only this rank.
  void Leave();
  void Read(size_t peer);
  absl::Status ReadMessage(MeshPeer& peer);
  void Write(size_t peer);
  void WakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  CollectiveMessages messages_{*this};
  base::Mutex mutex_;
  base::CondVar written_;  // a message, or a peer has left
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::string why_ ABSL_GUARDED_BY(mutex_);
  std::string lost_ ABSL_GUARDED_BY(mutex_);            // the peer whose connection broke, if that closed the group
  bool reported_ ABSL_GUARDED_BY(mutex_) = false;       // a call has returned the loss
  size_t queued_messages_ ABSL_GUARDED_BY(mutex_) = 0;  // of all peers, with those that are being written
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<MeshPeer> peers_;         // MeshPeer cannot move
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

absl::Status MeshGroup::Ended(const std::string& what, absl::Status status) {
  if (status.ok()) return status;
  bool first = false;
  {
    base::MutexLock lock(mutex_);
    first = !closed_ || (!lost_.empty() && !reported_);
    reported_ = true;
  }
  if (first) {
    CloseFor(fmt::format("{} failed: {}", what, base::Message(status)));
    return base::Unavailable("{} in group {}: {}", what, options().name, base::Message(status));
  }
  base::MutexLock lock(mutex_);
  return base::Aborted("{}: group {} is closed: {}", what, options().name, why_);
}

absl::Status MeshGroup::Send(int to, uint64_t tag, std::span<const std::byte> bytes) {
  MEDLEY_RETURN_IF_ERROR(CheckPeer(to));
  if (bytes.size() > kMaxMessageBytes) {
    return base::InvalidArgument("a message of {} bytes; at most {} are possible", bytes.size(), kMaxMessageBytes);
  }
  MeshPeer& peer = At(to);
  absl::Status status;
  {
    base::MutexLock lock(mutex_);
    const auto room = [&] {
      return closed_ || peer.left || queued_messages_ == 0 ||
             (queued_messages_ < kMaxQueuedMessages && queued_bytes_ + bytes.size() <= kMaxQueuedBytes);
    };
    if (!written_.WaitFor(mutex_, {}, options().timeout, room)) {
      status = base::DeadlineExceeded("{} takes no messages", Name(to));
    } else if (closed_) {
      status = base::Aborted("{}", why_);
    } else if (peer.left) {
      status = base::Unavailable("{} has left", Name(to));
    } else {
      Pack(kUserTags | tag, bytes.size(), bytes, peer.queue.emplace_back());
      ++queued_messages_;
      queued_bytes_ += peer.queue.back().size();
      peer.to_write.NotifyOne();
    }
  }
  return Ended("send to " + Name(to), status);
}

absl::Status MeshGroup::Flush() {
  absl::Status status;
  {
    base::MutexLock lock(mutex_);
    const auto sent = [&] {
      return closed_ || std::all_of(peers_.begin(), peers_.end(),
                                    [](const MeshPeer& peer) { return peer.queue.empty() && !peer.sending; });
    };
    if (!written_.WaitFor(mutex_, {}, options().timeout, sent)) {
      status = base::DeadlineExceeded("messages are still unsent");
    } else if (closed_) {
      status = base::Aborted("{}", why_);
    }
  }
  return Ended("flush", status);
}

absl::Status MeshGroup::Begin(int from, uint64_t tag, MessageReceiver& receiver) {
  MeshPeer& peer = At(from);
  base::MutexLock lock(mutex_);
  const auto arrived = peer.arrived.find(tag);
  if (arrived != peer.arrived.end()) {
    const std::vector<std::byte> message = std::move(arrived->second.front());
    arrived->second.pop_front();
    if (arrived->second.empty()) peer.arrived.erase(arrived);
    peer.arrived_bytes -= message.size();
    peer.to_read.NotifyOne();
    if (message.size() != receiver.bytes.size()) {
      return base::DataLoss("{} sent {} bytes, expected {}", Name(from), message.size(), receiver.bytes.size());
    }
    std::copy(message.begin(), message.end(), receiver.bytes.begin());
    receiver.state = MessageReceiver::State::kDone;
    return absl::OkStatus();
  }
  if (closed_) return base::Unavailable("{}", why_);
  if (peer.left) return base::Unavailable("{} has left", Name(from));
  peer.receivers[tag].push_back(&receiver);
  peer.to_read.NotifyOne();
  return absl::OkStatus();
}

absl::Status MeshGroup::End(int from, uint64_t tag, MessageReceiver& receiver, base::nanoseconds patience) {
  MeshPeer& peer = At(from);
  base::MutexLock lock(mutex_);
  const bool ended = receiver.changed.WaitFor(mutex_, {}, patience, [&] {
    return receiver.state == MessageReceiver::State::kDone ||
           ((closed_ || peer.left) && receiver.state == MessageReceiver::State::kWaiting);
  });
  if (receiver.state == MessageReceiver::State::kDone) return absl::OkStatus();
  if (receiver.state == MessageReceiver::State::kReading) {  // the reader uses our memory: end it, then go
    peer.stream->Shutdown();
    receiver.changed.Wait(mutex_, {}, [&] { return receiver.state != MessageReceiver::State::kReading; });
    if (receiver.state == MessageReceiver::State::kDone) return absl::OkStatus();
  }
  if (const auto waiting = peer.receivers.find(tag); waiting != peer.receivers.end()) {
    std::erase(waiting->second, &receiver);
    if (waiting->second.empty()) peer.receivers.erase(waiting);
  }
  if (closed_) return base::Unavailable("{}", why_);
  if (peer.left) return base::Unavailable("{} has left", Name(from));
  if (!ended) return base::Unavailable("no message from {} in time", Name(from));
  return base::Unavailable("{}: the connection broke", Name(from));
}

void MeshGroup::Read(size_t index) {
  MeshPeer& peer = peers_[index];
  absl::Status status;
  do {
    status = ReadMessage(peer);
  } while (status.ok());
  {
    base::MutexLock lock(mutex_);
    if (absl::IsOutOfRange(status)) {
      peer.left = true;
      return WakeAll();
    }
    if (!closed_) lost_ = options().members[index];
  }
  CloseFor(fmt::format("{}: {}", options().members[index], base::Message(status)));
}

// OutOfRange: the peer has left, between two messages.
absl::Status MeshGroup::ReadMessage(MeshPeer& peer) {
  MessageHeader header;
  const std::span<std::byte> head = std::as_writable_bytes(std::span(&header, 1));
  MEDLEY_RETURN_IF_ERROR(peer.stream->Read(head.first(1)));
  MEDLEY_RETURN_IF_ERROR(Whole(peer.stream->Read(head.subspan(1))));
  if (header.tag == kFarewellTag) return base::OutOfRange("the peer has left");
  if (header.size > kMaxMessageBytes) return base::DataLoss("a message of {} bytes", header.size);
  MessageReceiver* receiver = nullptr;
  {
    base::MutexLock lock(mutex_);
    const auto waits = [&] {
      const auto found = peer.receivers.find(header.tag);
      if (found == peer.receivers.end()) return false;
      receiver = found->second.front();
      return true;
    };
    // What arrived before its receiver is kept, up to a bound; a single message always is.
    peer.to_read.Wait(mutex_, {}, [&] {
      return closed_ || waits() || peer.arrived_bytes == 0 || peer.arrived_bytes + header.size <= kMaxArrivedBytes;
    });
    if (closed_) return base::Aborted("{}", why_);
    if (receiver != nullptr) {
      if (receiver->bytes.size() != header.size) {
        return base::DataLoss("a message of {} bytes, expected {}", header.size, receiver->bytes.size());
      }
      auto& waiting = peer.receivers[header.tag];
      waiting.pop_front();
      if (waiting.empty()) peer.receivers.erase(header.tag);
      receiver->state = MessageReceiver::State::kReading;
    } else {
      peer.arrived_bytes += header.size;
    }
  }
  if (receiver == nullptr) {
    std::vector<std::byte> bytes(header.size);
    const absl::Status read = Whole(peer.stream->Read(bytes));
    base::MutexLock lock(mutex_);
    // A receiver may have begun to wait meanwhile.
    const auto found = peer.receivers.find(header.tag);
    if (read.ok() && found != peer.receivers.end()) {
      MessageReceiver* late = found->second.front();
      if (late->bytes.size() != bytes.size()) {
        return base::DataLoss("a message of {} bytes, expected {}", bytes.size(), late->bytes.size());
      }
      found->second.pop_front();
      if (found->second.empty()) peer.receivers.erase(found);
      std::copy(bytes.begin(), bytes.end(), late->bytes.begin());
      late->state = MessageReceiver::State::kDone;
      late->changed.NotifyOne();
      peer.arrived_bytes -= header.size;
    } else if (read.ok()) {
      peer.arrived[header.tag].push_back(std::move(bytes));
    }
    return read;
  }
  const absl::Status read = Whole(peer.stream->Read(receiver->bytes));
  base::MutexLock lock(mutex_);
  receiver->state = read.ok() ? MessageReceiver::State::kDone : MessageReceiver::State::kWaiting;
  if (!read.ok()) peer.receivers[header.tag].push_front(receiver);  // the end of the group wakes it
  receiver->changed.NotifyOne();
  return read;
}

void MeshGroup::Write(size_t index) {
  MeshPeer& peer = peers_[index];
  std::vector<std::byte> message;
  while (true) {
    {
      base::MutexLock lock(mutex_);
      if (peer.sending) {
        --queued_messages_;
        queued_bytes_ -= message.size();
        written_.NotifyAll();
      }
      peer.sending = false;
      peer.to_write.Wait(mutex_, {}, [&] { return closed_ || !peer.queue.empty(); });
      if (closed_) return;
      message = std::move(peer.queue.front());
      peer.queue.pop_front();
      peer.sending = true;
    }
    absl::Status written;
    {
      base::MutexLock lock(peer.write_mutex);
      written = peer.stream->Write(message);
    }
    if (written.ok()) continue;
    {
      base::MutexLock lock(mutex_);
      if (peer.left) continue;  // it does not want the message
    }
    return CloseFor(fmt::format("{}: {}", options().members[index], base::Message(written)));
  }
}

void MeshGroup::Leave() {
  std::vector<PeerStream*> in_order;
  {
    base::MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    why_ = "the group is destroyed";
    for (MeshPeer& peer : peers_) {
      if (peer.stream == nullptr) continue;
      if (peer.sending || !peer.queue.empty()) {
        peer.stream->Shutdown();  // it would miss messages
      } else {
        in_order.push_back(peer.stream.get());
      }
    }
    WakeAll();
  }
  const base::SteadyTime deadline = base::SystemClock().Steady() + base::seconds(1);
  const MessageHeader farewell{kFarewellTag, 0};
  for (PeerStream* stream : in_order) stream->Leave(std::as_bytes(std::span(&farewell, 1)), deadline);
}

void MeshGroup::CloseFor(std::string_view why) {
  base::MutexLock lock(mutex_);
  if (closed_) return;
  closed_ = true;
  why_ = why;
  for (MeshPeer& peer : peers_) {
    if (peer.stream != nullptr) peer.stream->Shutdown();
  }
  WakeAll();
}

// The group is closed, or a peer has left.
void MeshGroup::WakeAll() {
  written_.NotifyAll();
  for (MeshPeer& peer : peers_) {
    peer.to_read.NotifyAll();
    peer.to_write.NotifyAll();
    for (const auto& [tag, receivers] : peer.receivers) {
      for (MessageReceiver* receiver : receivers) receiver->changed.NotifyAll();
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Group>> ConnectMeshGroup(const GroupOptions& options, KeyValueStore& store,
                                                        std::stop_token stop) {
  if (options.members.size() == 1)
    return std::make_unique<MeshGroup>(options, std::vector<std::unique_ptr<PeerStream>>(1));
  auto streams = ConnectMesh(options, store, stop);
  if (!streams.ok()) return base::Annotate(streams.status(), fmt::format("connecting group {}", options.name));
  auto group = std::make_unique<MeshGroup>(options, *std::move(streams));
  MEDLEY_RETURN_IF_ERROR(group->Start());
  return group;
}

}  // namespace medley::worker
