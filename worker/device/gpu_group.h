// A group whose sums over all ranks are done by their GPUs.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "worker/collective/group.h"
#include "worker/device/device.h"

namespace medley::worker::device {

// What a rank brings to a group.
struct GpuRank {
  std::shared_ptr<Device> gpu;  // null: none
  bool may_be_plain = false;    // NCCL, which does not encrypt, may connect machines though the group has TLS
  std::string machine = "";     // the same for all processes of a machine; empty: ask the kernel
};

// What the ranks tell each other, in the order of ranks.
struct GpuCard {
  DeviceId gpu{};
  std::array<char, 64> machine{};
  bool has_gpu = false;
  bool may_be_plain = false;  // or the group has no TLS
};

// Why the ranks do not add over their GPUs; empty: they do. Pure.
std::string WhyNotOverGpus(std::vector<GpuCard> cards);

// Returns a group that adds over the ranks' GPUs and does everything else over `base`, if every rank has a GPU of its
// own, and either `base` is not encrypted, or all ranks are on one machine, or all may be plain; else `base`. All ranks
// must call it, those without a GPU too. The GPUs' key passes over the connections of `base`. `options`: those of
// `base`. Errors: those of `base`, Cancelled, and NCCL's.
//
// Sums of levels or of some ranks stay with `base`, which adds in the order that the plan prescribes; NCCL chooses its
// own, the same for the same GPUs.
absl::StatusOr<std::unique_ptr<worker::Group>> JoinGpus(std::unique_ptr<worker::Group> base,
                                                        const worker::GroupOptions& options, GpuRank rank,
                                                        std::stop_token stop);

}  // namespace medley::worker::device
