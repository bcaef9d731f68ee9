// What a Lease (coordination.k8s.io/v1) says about who leads. Plain value; conversions are pure.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::kube {

struct LeaderRecord {
  std::string holder;  // identity of the leader; empty: nobody, it was given up
  int64_t lease_seconds = 0;
  // RFC 3339 with microseconds, by the holder's clock: for people, never compared (clocks differ).
  std::string acquire_time;
  std::string renew_time;
  int64_t transitions = 0;  // grows by one with every change of the holder: the term of the leader
  bool operator==(const LeaderRecord&) const = default;

  base::nanoseconds duration() const { return base::seconds(lease_seconds); }
};

// Fields that are absent or of another type count as empty.
LeaderRecord ReadLeaderRecord(const Object& lease);
// Replaces the record's fields of spec; leaves everything else.
void WriteLeaderRecord(const LeaderRecord& record, Object& lease);

}  // namespace medley::kube
