// A member's session with its coordinator: sends Hello, then receives orders and sends reports; reconnects after a
// break, also to another coordinator that has taken the job over. It obeys no coordinator with a smaller term than one
// that it has obeyed.
//
// Run blocks its thread; Send is thread-safe. A report that cannot be sent is dropped, because the next Hello contains
// the member's state and the coordinator continues from there. Only Leaving is sent again.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "medley/job/v1/coordinator.pb.h"
#include "worker/collective/key_value_store.h"
#include "worker/trainer/coordinator_address.h"

namespace medley::rpc {
class MutualTls;
}

namespace medley::worker {

struct SessionOptions {
  std::string coordinator;  // "host:port"
  // Where it is found when another one has taken its place; null: it stays at `coordinator`.
  std::shared_ptr<CoordinatorAddress> address_book;
  std::string token;
  std::shared_ptr<const rpc::MutualTls> tls;  // null: plain text
  std::string member;
  job::v1::MemberRole role = job::v1::MEMBER_ROLE_TRAINER;
  std::string pool;
  std::string address;                            // Hello.address
  std::string instance;                           // random per process
  base::nanoseconds give_up{base::seconds(300)};  // longest time without a coordinator
  uint64_t seed = 1;                              // seed of the backoff's jitter
};

// The state that this member holds, for Hello.
struct Held {
  int64_t generation = 0;
  int64_t step = 0;
};

class SessionClient {
 public:
  SessionClient(SessionOptions options, base::Clock& clock);
  ~SessionClient();

  // Runs until stopped, then returns OK. Errors: Unavailable after `give_up` without a coordinator; Unauthenticated as
  // soon as the coordinator refuses the token, if there is no `address_book`.
  absl::Status Run(const std::function<void(const job::v1::SessionResponse&)>& on_message,
                   const std::function<Held()>& held, std::stop_token stop);
  void Send(job::v1::SessionRequest request);

 private:
  class Rep;
  const std::unique_ptr<Rep> rep_;
};

// The coordinator's rendezvous store of one generation. Thread-safe.
std::unique_ptr<KeyValueStore> MakeRendezvousStore(const SessionOptions& options, int64_t generation);

}  // namespace medley::worker
