#include "worker/device/gpu_group.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/collective/following_group.h"

namespace medley::worker::device {
namespace {

using worker::FollowingGroup;
using worker::Group;
using worker::GroupOptions;

class GpuGroup final : public FollowingGroup {
 public:
  GpuGroup(const GroupOptions& options, std::unique_ptr<Group> base, std::shared_ptr<Device> gpu,
           std::unique_ptr<DeviceGroup> gpus)
      : FollowingGroup(std::move(base)), options_(options), gpu_(std::move(gpu)), gpus_(std::move(gpus)) {}

  absl::Status AllreduceSum(std::span<float> values, model::AllreduceAlgorithm) override {
    if (values.empty()) return absl::OkStatus();
    const absl::Status status = gpus_->Sum(values, options_.timeout);
    if (status.ok()) return status;
    // The base knows why the group was closed before; if it was not, its peers learn of it now.
    below().Close(fmt::format("allreduce of {} values failed: {}", values.size(), base::Message(status)));
    if (absl::IsAborted(status)) return below().Barrier();
    return base::Unavailable("allreduce of {} values in group {}: {}", values.size(), options_.name,
                             base::Message(status));
  }
  using FollowingGroup::AllreduceSum;

  void Close(std::string_view why) override {
    below().Close(why);  // first: who wakes asks the group below for the reason
    gpus_->Abort();
  }

 private:
  void CloseOwn(std::string_view) override { gpus_->Abort(); }

  const GroupOptions options_;
  const std::shared_ptr<Device> gpu_;
  const std::unique_ptr<DeviceGroup> gpus_;  // before gpu_ ends
};

// The kernel's own number, which containers of a machine share.
std::string ThisMachine() { return base::ReadFile("/proc/sys/kernel/random/boot_id").value_or(""); }

GpuCard CardOf(const GpuRank& rank, bool encrypted) {
  GpuCard card{.has_gpu = rank.gpu != nullptr, .may_be_plain = !encrypted || rank.may_be_plain};
  if (rank.gpu != nullptr) card.gpu = rank.gpu->id();
  const std::string machine = rank.machine.empty() ? ThisMachine() : rank.machine;
  machine.copy(card.machine.data(), card.machine.size() - 1);
  return card;
}

// The key that all ranks join with; nullopt: they do not.
absl::StatusOr<std::optional<GroupKey>> AgreeOnKey(Group& base, const GpuRank& rank, bool encrypted,
                                                   const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [&base] { base.Close("the group is no longer needed"); });
  // One message first: most groups have no GPU, and should not pay for a message of each rank to all.
  float with_gpu = rank.gpu == nullptr ? 0 : 1;
  MEDLEY_RETURN_IF_ERROR(base.AllreduceSum({&with_gpu, 1}, model::AllreduceAlgorithm::kLinear));
  if (with_gpu == 0) return std::nullopt;
  std::vector<GpuCard> cards(static_cast<size_t>(base.size()));
  cards[static_cast<size_t>(base.rank())] = CardOf(rank, encrypted);
  for (int of = 0; of < base.size(); ++of) {
    MEDLEY_RETURN_IF_ERROR(base.Broadcast(std::as_writable_bytes(std::span(&cards[static_cast<size_t>(of)], 1)), of));
  }
  if (const std::string why = WhyNotOverGpus(cards); !why.empty()) {
    if (rank.gpu != nullptr) base::log::Info("adding gradients over the network", {{"why", why}});
    return std::nullopt;
  }
  // The first rank's error must not let the others wait for a key, so it sends whether there is one.
  absl::StatusOr<GroupKey> key = GroupKey{};
  if (base.rank() == 0) key = rank.gpu->NewGroupKey();
  bool made = key.ok();
  MEDLEY_RETURN_IF_ERROR(base.Broadcast(std::as_writable_bytes(std::span(&made, 1)), 0));
  MEDLEY_RETURN_IF_ERROR(key.status());
  if (!made) return base::Unavailable("the first rank has no key for a group of GPUs");
  MEDLEY_RETURN_IF_ERROR(base.Broadcast(std::span(*key), 0));
  return *key;
}

}  // namespace

std::string WhyNotOverGpus(std::vector<GpuCard> cards) {
  if (!std::ranges::all_of(cards, &GpuCard::has_gpu)) return "not every trainer has a GPU";
  const auto elsewhere = [&](const GpuCard& card) {
    return card.machine[0] == '\0' || card.machine != cards.front().machine;
  };
  if (!std::ranges::all_of(cards, &GpuCard::may_be_plain) && std::ranges::any_of(cards, elsewhere)) {
    return "NCCL would not encrypt what it sends to other machines (MEDLEY_PLAIN_NCCL)";
  }
  std::ranges::sort(cards, {}, &GpuCard::gpu);
  const bool shared = std::ranges::adjacent_find(cards, {}, &GpuCard::gpu) != cards.end();
  return shared ? "two trainers have the same GPU" : "";
}

absl::StatusOr<std::unique_ptr<Group>> JoinGpus(std::unique_ptr<Group> base, const GroupOptions& options, GpuRank rank,
                                                std::stop_token stop) {
  if (base->size() < 2) return base;
  const auto key = AgreeOnKey(*base, rank, options.tls.has_value(), stop);
  if (!key.ok() && stop.stop_requested()) return base::Cancelled("connecting group {} was stopped", options.name);
  MEDLEY_RETURN_IF_ERROR(key.status());
  if (!key->has_value()) return base;
  auto gpus = rank.gpu->JoinGroup(**key, base->rank(), base->size(), options.rendezvous_timeout, std::move(stop));
  if (!gpus.ok()) {
    base->Close(base::Message(gpus.status()));
    return base::Annotate(gpus.status(), fmt::format("group {}", options.name));
  }
  return std::make_unique<GpuGroup>(options, std::move(base), std::move(rank.gpu), *std::move(gpus));
}

}  // namespace medley::worker::device
