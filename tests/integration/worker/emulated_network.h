// A network of processes on one machine whose links have delays and rates that a test changes while they run.
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

namespace medley::worker {

// One direction of a link. Packets never overtake one another.
struct LinkState {
  base::nanoseconds delay{0};   // of each packet
  double spread = 0;            // 0 to 1; the delay of a burst is drawn evenly from delay * (1 - spread, 1 + spread)
  double bytes_per_second = 0;  // 0: no limit
};

class EmulatedNetwork {
 public:
  static constexpr char kHost[] = "host";

  // `seed`: of random delays. Errors: those of the system calls, with the step that failed.
  static absl::StatusOr<std::unique_ptr<EmulatedNetwork>> Create(uint64_t seed);
  ~EmulatedNetwork();

  // The IPv4 address of a node, which is created when it is new. Errors: as Create; ResourceExhausted after 250 nodes.
  absl::StatusOr<std::string> Address(const std::string& node);
  // Both directions, for packets that are sent from now on. Until then, links have no delay and no limit.
  absl::Status SetLink(const std::string& a, const std::string& b, const LinkState& state);

  // What a node sends to all others at most, and receives from them, for packets from now on; acknowledgements and the
  // like do not count. 0: no limit, as until then. The node is created when it is new. Errors: as Address.
  absl::Status SetCard(const std::string& node, double bytes_per_second);

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

// The main function of tests with an emulated network: runs all tests, as root of a user namespace where the user is
// not root. On a machine that allows no such network a line says so,
// and the exit status is 77: skipped.
int RunAsRoot(int argc, char** argv);

}  // namespace medley::worker
