// status.goodput of a TrainingJob: the bill, and what the first plan promised, in USD. Values; not synchronised.
#pragma once

#include <cstddef>
#include <optional>

#include "common/goodput/bill.h"
#include "kube/object.h"

namespace medley::ops {

// A job with pods in more pools has the others in one row.
inline constexpr size_t kMostBilledPools = 100;
inline constexpr char kOtherPools[] = "other";

// What the first plan promised for the whole job.
struct PromiseStatus {
  double usd = 0;
  double usd_per_hour = 0;
  double throughput = 0;  // samples/s
  bool operator==(const PromiseStatus&) const = default;
};

struct GoodputStatus {
  goodput::Bill bill;
  std::optional<PromiseStatus> promised;

  static GoodputStatus FromJson(const kube::Json& json);
  kube::Json ToJson() const;
  bool operator==(const GoodputStatus&) const = default;
};

}  // namespace medley::ops
