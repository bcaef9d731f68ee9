// The lists of one device as one sequence: the order in which a single thread starts their instructions. Pure.
//
// Like the lists it is repeated: in iteration i, an entry works for step i - shift.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/program/program.h"

namespace medley::worker {

struct Sequence {
  // A layout in which the device is, and its index there.
  struct Seat {
    int layout = 0;
    int replica = 0;
    bool operator==(const Seat&) const = default;
  };
  struct Entry {
    int instruction = 0;
    int shift = 0;  // of a message that is received: of what needs it
  };
  // Instructions of the compute list in its order; before each the messages that it is the first to need, after each
  // what it is the last to complete: messages, pushes, reductions (in the order of their list, as on all devices).
  // LoadBatch, PullRows and Report are not in it: the prefetcher does the first two, the return of a step is the last.
  std::vector<Entry> entries;
  std::vector<int> blocks;      // on this device, ascending
  std::vector<Seat> seats;      // by layout, ascending
  std::vector<size_t> seat_of;  // by entry of `blocks`: index into `seats`
  int lag = 1;                  // a step computes with the parameters of `lag` steps before
  int depth = 1;                // iterations from the first to the last entry of a step: as many steps are open at once
};

// Errors: Unimplemented for what this executor cannot run, naming it: blocks of different lags on one device.
absl::StatusOr<Sequence> SequenceOf(const program::Program& program, int device);

// The seats of blocks, by block of the program; 0 for those of other devices.
std::vector<size_t> SeatsOf(const program::Program& program, const Sequence& sequence);

// Whether passes of other micro-batches may come between those of two neighbouring blocks. Blocks of one segment follow
// each other, unless the plan orders them.
bool Interleaved(const program::Program& program, const Sequence& sequence);

}  // namespace medley::worker
