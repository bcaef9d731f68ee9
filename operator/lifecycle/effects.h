// What the life of a job does to the world without an answer: the shell carries out all effects, in order, when the
// pass has ended. Values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/model/forward.h"
#include "kube/object.h"

namespace medley::ops::lifecycle {

struct PublishEvent {
  bool warning = false;
  std::string reason;
  std::string message;
};

struct CountRestarts {
  int count = 0;
};

struct CountPlan {
  std::string result;  // accepted, infeasible, refused, unavailable
};

struct CountReplan {
  std::string decision;
};

struct AddSpent {
  double usd = 0;
};

struct RecordSwitch {
  bool recovery = false;
  double pause_seconds = 0;
  int64_t lost_steps = 0;
};

struct Disconnect {};  // from the coordinator

struct OfferObservation {
  std::shared_ptr<const model::JobObservation> observation;  // never null
};

// A coordinator has served a leader with this newer term: this operator may no longer lead.
struct ReportNewerTerm {
  int64_t term = 0;
};

// Pods of a pool have found no node for longer than spec.provisionTimeout. Only pods that ask for nothing beyond the
// pool's unit say something of an autoscaled pool.
struct ReportNoNode {
  std::string pool;
  std::string zone;                   // that they are pinned to; empty: none
  std::vector<kube::ObjectPtr> pods;  // as cached; they may be deleted in the same pass
};

struct WriteLog {
  bool warning = false;
  std::string message;
  std::string error;
};

// A class, as Action is (actions.h).
class Effect : public std::variant<PublishEvent, CountRestarts, CountPlan, CountReplan, AddSpent, RecordSwitch,
                                   Disconnect, OfferObservation, ReportNewerTerm, ReportNoNode, WriteLog> {
 public:
  using variant::variant;
  Effect(const Effect& other);
  Effect(Effect&& other) noexcept;
  Effect& operator=(const Effect& other);
  Effect& operator=(Effect&& other) noexcept;
  ~Effect();
};

}  // namespace medley::ops::lifecycle
