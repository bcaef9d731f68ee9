// Orders of tasks whose resources are given: by upward rank (HeteroG, section 4.2), as they become ready, and repaired.
// A device is a resource, and so is a link between two devices. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace medley::sched {

// Tasks of which each occupies its resource alone and is not interrupted.
struct TaskGraph {
  struct Edge {
    int task = 0;      // greater than the task that it is an edge of
    double delay = 0;  // seconds from the end of the one to the earliest start of the other
  };
  struct Task {
    int resource = 0;
    double seconds = 0;
    std::vector<Edge> next = {};
  };
  int resources = 0;
  std::vector<Task> tasks;
};

// rank(o) = seconds(o) + max over what follows o of delay + rank; the length of the longest path from its start.
std::vector<double> UpwardRanks(const TaskGraph& graph);

// All tasks; none is before one that it needs. Each resource executes its tasks in this order, and waits for a task
// that is not ready.
using TaskOrder = std::vector<int>;

// By falling rank, of equal ones the first: HeteroG's list scheduling. The step takes at most as long as all tasks
// together, which is at most `resources` times the least possible where nothing is delayed (Theorem 1), and no smaller
// factor holds (Theorem 2).
TaskOrder OrderByRank(const TaskGraph& graph);

// First in, first out: a free resource takes the task that became ready first, of several the first one. Tasks by their
// start.
TaskOrder OrderAsReady(const TaskGraph& graph);

struct TaskTimes {
  std::vector<double> start;
  double seconds = 0;  // until the last task has ended
};
TaskTimes TimeTasks(const TaskGraph& graph, const TaskOrder& order);

// Shortens the whole by moving single tasks on the longest path: before the task that precedes it on its resource, or
// into the longest idle time of the resource before it. Ends when no move helps, or after `evaluations` of a whole
// order. Never longer than `order`.
TaskOrder RepairOrder(const TaskGraph& graph, const TaskOrder& order, int64_t evaluations);

}  // namespace medley::sched
