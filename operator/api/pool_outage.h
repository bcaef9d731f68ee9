// An outage: pods of an autoscaled pool found no node within spec.provisionTimeout, so jobs plan no new units of the
// pool for a while, which grows with each failure in a row. Units that jobs hold are not affected. Values and pure
// functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "kube/object.h"

namespace medley::ops {

struct PoolOutage {
  std::string zone;        // that the pods were pinned to; empty: any
  int64_t generation = 0;  // metadata.generation of the pool: an edit of the pool ends the outage
  int failures = 0;        // in a row
  base::WallTime since;    // of the first of them; whole seconds, as in the status
  base::WallTime until;    // when jobs may plan new units again; the failures in a row are remembered for longer
  bool operator==(const PoolOutage&) const = default;
};

// The first outage lasts 5 minutes, each further one in a row twice as long, at most 2 hours.
PoolOutage AfterFailure(const std::optional<PoolOutage>& before, const std::string& zone, int64_t generation,
                        base::WallTime now);

// The outage that keeps jobs from new units in `zone` at present; null: there is none.
const PoolOutage* FindActive(const std::vector<PoolOutage>& outages, int64_t generation, const std::string& zone,
                             base::WallTime now);

// "unavailable until T in zone z, because no node came for its pods (2 times in a row)", for messages.
std::string InWords(const PoolOutage& outage);

// `outages` of a ResourcePool's status. Entries that cannot be read are left out.
std::vector<PoolOutage> OutagesFromJson(const kube::Json& list);
kube::Json ToJson(const std::vector<PoolOutage>& outages);

}  // namespace medley::ops
