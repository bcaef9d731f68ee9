// The leader that a Lease (coordination.k8s.io/v1) names. A plain value; the conversions are pure.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::kube {

struct LeaderRecord {
  std::string holder;  // identity of the leader; empty: the Lease was released
  int64_t lease_seconds = 0;
  // RFC 3339 with microseconds, from the holder's clock. For people; never compared, because clocks differ.
  std::string acquire_time;
  std::string renew_time;
  int64_t transitions = 0;  // the leader term; grows by one with every change of the holder
  bool operator==(const LeaderRecord&) const = default;

  base::nanoseconds duration() const { return base::seconds(lease_seconds); }
};

// Missing fields and fields of another type are read as empty.
LeaderRecord ReadLeaderRecord(const Object& lease);
// Sets the record's fields in spec and leaves all other fields.
void WriteLeaderRecord(const LeaderRecord& record, Object& lease);

}  // namespace medley::kube
