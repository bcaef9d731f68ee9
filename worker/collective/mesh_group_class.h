// The group of mesh_group.h. What it does is in mesh_group.cc (its life), mesh_send.cc and mesh_receive.cc. Thread-safe
// as Group is.
#pragma once

#include <absl/status/statusor.h>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "worker/collective/collective_group.h"
#include "worker/collective/mesh_peer.h"

namespace medley::worker {

class MeshGroup final : public CollectiveGroup {
 public:
  MeshGroup(GroupOptions given, std::vector<std::unique_ptr<PeerStream>> streams)
      : CollectiveGroup(std::move(given)), peers_(options().members.size()) {
    for (size_t i = 0; i < peers_.size(); ++i) peers_[i].stream = std::move(streams[i]);
  }
  // ResourceExhausted: the system gives this process no more threads.
  absl::Status Start();
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

  // No message of the caller begins before the end, so this waits for the write of one at most.
  absl::Status WriteCollective(int to, std::span<const std::byte> bytes);
  absl::Status ReceiveMessage(int from, uint64_t tag, std::span<std::byte> bytes) {
    MessageReceiver receiver{bytes};
    MEDLEY_RETURN_IF_ERROR(Begin(from, tag, receiver));
    return End(from, tag, receiver, options().timeout);
  }
  // Writes what the connection takes of a message whose turn it is; the queue gets the rest.
  absl::Status WriteDirectly(MeshPeer& peer, uint64_t tag, std::span<const std::byte> bytes);
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

}  // namespace medley::worker
