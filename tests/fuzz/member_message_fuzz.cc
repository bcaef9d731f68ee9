// The fuzz target of the coordinator's decisions: messages that members send, in any order and with any content, and
// the journal that it restores. They may fail the job, but not the process.
//
// The first byte chooses: 0: the rest is a journal's CoordinatorState. Otherwise the rest is a list of messages: a byte
// for the member, a byte for the length, that many bytes of a SessionRequest. Time passes between them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "tests/unit/worker/coordinator/core/sim_world.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

class Driver {
 public:
  explicit Driver(const std::optional<job::v1::CoordinatorState>& journal) : core_(Options(), Now(), journal) {}

  void Play(std::string_view messages) {
    const job::v1::ApplyPlanRequest plan = sim::MakePlan(1, 1, 1, 1, "a");
    static_cast<void>(core_.ApplyPlan(plan, Now()));
    for (const job::v1::MemberSlot& slot : plan.slots()) {
      job::v1::SessionRequest hello;
      hello.mutable_hello()->set_member(slot.member());
      hello.mutable_hello()->set_role(slot.role());
      hello.mutable_hello()->set_pool(slot.pool());
      hello.mutable_hello()->set_instance("i");
      Say(slot.member(), hello);
    }
    while (messages.size() >= 2) {
      const std::string& member = plan.slots(static_cast<unsigned char>(messages[0]) % plan.slots_size()).member();
      const size_t size = std::min<size_t>(static_cast<unsigned char>(messages[1]), messages.size() - 2);
      job::v1::SessionRequest message;
      if (message.ParseFromArray(messages.data() + 2, static_cast<int>(size))) Say(member, message);
      messages.remove_prefix(2 + size);
    }
    core_.OnCheckpointFound(CheckpointSearch(), Now());
    for (int i = 0; i < 20; ++i) Pass(base::seconds(40));
    static_cast<void>(core_.Observe(Now()));
  }

 private:
  static CoreOptions Options() {
    CoreOptions options;
    options.epochs = 2;
    options.batch_size = 10;
    options.checkpoints = true;
    return options;
  }
  Instant Now() const { return {base::SteadyTime(time_), base::WallTime(base::seconds(1'700'000'000))}; }
  void Say(const std::string& member, const job::v1::SessionRequest& message) {
    core_.OnMessage(member, "i", message, Now());
    Pass(base::milliseconds(50));
  }
  void Pass(base::nanoseconds time) {
    time_ += time;
    core_.Tick(Now());
    static_cast<void>(core_.TakeCommands());
  }

  base::nanoseconds time_ = base::seconds(1);
  CoordinatorCore core_;
};

void FuzzMemberMessage(std::string_view input) {
  if (input.empty()) return;
  const bool journal = input.front() == 0;
  input.remove_prefix(1);
  std::optional<job::v1::CoordinatorState> state;
  if (journal) {
    state.emplace();
    if (!state->ParseFromArray(input.data(), static_cast<int>(input.size()))) return;
    input = {};
  }
  Driver(state).Play(input);
}

}  // namespace
}  // namespace medley::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::worker::FuzzMemberMessage({reinterpret_cast<const char*>(data), size});
  return 0;
}
