// A network of processes on one machine whose links have delays and rates, which may change while they run. For tests,
// and for jobs that try out what a slow link does.
//
// Each node has a network namespace of its own with one TUN device; a thread carries the packets between them in user
// space. So the processes of a node use ordinary sockets, and know nothing of the emulation. The kernel needs no
// queueing disciplines.
//
// The thread that creates the network moves into a namespace of its own, for good, with every thread and process that
// it starts later: it is the node kHost. Nobody else can reach the network.
//
// Needs root, also of a user namespace, and TUN devices. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"

namespace medley::localcluster {

// One direction of a link. Packets never overtake one another.
struct LinkState {
  base::nanoseconds delay{0};   // of each packet
  double spread = 0;            // 0 to 1; the delay of a burst is drawn evenly from delay * (1 - spread, 1 + spread)
  double bytes_per_second = 0;  // 0: no limit
};

// How a node is connected to all others, beside the state of its links to single ones.
struct CardState {
  base::nanoseconds delay{0};  // of each packet that it sends, and of each that it receives
  double spread = 0;           // as in LinkState
  // Bytes per second that it sends and receives at most; 0: no limit. Acknowledgements and the like do not count.
  double sends = 0, receives = 0;
  bool operator==(const CardState&) const = default;
};

class EmulatedNetwork {
 public:
  static constexpr char kHost[] = "host";

  // `seed`: of random delays. Errors: those of the system calls, with the step that failed.
  static absl::StatusOr<std::unique_ptr<EmulatedNetwork>> Create(uint64_t seed);
  ~EmulatedNetwork();

  // The IPv4 address of a node, which is created when it is new. Errors: as Create; ResourceExhausted: 250 nodes are in
  // use.
  absl::StatusOr<std::string> Address(const std::string& node);
  // The network namespace of a node, a descriptor for setns that is valid as long as the network. Errors: as Address.
  absl::StatusOr<int> Namespace(const std::string& node);
  // No process of the node runs any more: another one may get its address, with a new card and new links.
  void Remove(const std::string& node);
  // Both directions, for packets that are sent from now on. Until then, links have no delay and no limit.
  absl::Status SetLink(const std::string& a, const std::string& b, const LinkState& state);

  // For packets that are sent from now on. The node is created when it is new. Errors: as Address.
  absl::Status SetCard(const std::string& node, const CardState& state);

  // While it lives, the calling thread is in the namespace of a node, and so is every process that it starts. The node
  // must exist.
  class Inside {
   public:
    Inside(EmulatedNetwork& network, const std::string& node);
    ~Inside();

   private:
    EmulatedNetwork& network_;
  };

 private:
  struct State;
  explicit EmulatedNetwork(std::unique_ptr<State> state);
  void Enter(const std::string& node);

  const std::unique_ptr<State> state_;
};

}  // namespace medley::localcluster
