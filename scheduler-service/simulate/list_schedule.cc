#include "scheduler-service/simulate/list_schedule.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <utility>

namespace medley::sched {
namespace {

constexpr double kShorter = 1 - 1e-12;
constexpr int kNoTask = -1;

size_t Index(int i) { return static_cast<size_t>(i); }

// The tasks of each resource in their order.
using Sequences = std::vector<std::vector<int>>;

Sequences SequencesOf(const TaskGraph& graph, const TaskOrder& order) {
  Sequences sequences(Index(graph.resources));
  for (const int task : order) sequences[Index(graph.tasks[Index(task)].resource)].push_back(task);
  return sequences;
}

// Moves tasks of one order while the last of them ends earlier.
class Repair {
 public:
  Repair(const TaskGraph& graph, const TaskOrder& order, int64_t evaluations)
      : graph_(graph), left_(evaluations), sequences_(SequencesOf(graph, order)), order_(order) {
    for (const TaskGraph::Task& task : graph.tasks) {
      for (const TaskGraph::Edge& edge : task.next) ++needs_[Index(edge.task)];
    }
    times_ = TimeTasks(graph, order);
    best_seconds_ = times_.seconds;
    cost_ = CostOf(times_);
  }

  // Along the longest path, then again from its start, until a whole pass changes nothing.
  TaskOrder Run() {
    bool changed = true;
    while (changed && left_ > 0) {
      changed = false;
      for (double from = 0; left_ > 0;) {
        const std::vector<int> path = LongestPath();
        const auto next = std::ranges::find_if(path, [&](int task) {
          const double start = times_.start[Index(task)];
          if (start < from || !Improve(task)) return false;
          from = start;
          return true;
        });
        if (next == path.end()) break;
        changed = true;
      }
    }
    return best_;
  }

 private:
  // The whole, and a mean of all tasks: often several must be earlier before the last of all is.
  static double CostOf(const TaskTimes& times) {
    double sum = 0;
    for (const double start : times.start) sum += start;
    return times.seconds + sum / static_cast<double>(std::max<size_t>(1, times.start.size()));
  }

  // Tasks of a longest path, by their start: each begins when the one before it lets it.
  std::vector<int> LongestPath() const {
    std::vector<int> cause(graph_.tasks.size(), kNoTask);
    std::vector<double> bound(graph_.tasks.size(), -1);
    std::vector<int> last_of(Index(graph_.resources), kNoTask);
    int last = kNoTask;
    for (const int i : order_) {
      const TaskGraph::Task& task = graph_.tasks[Index(i)];
      int& before = last_of[Index(task.resource)];
      const double free = before == kNoTask ? -1 : times_.start[Index(before)] + graph_.tasks[Index(before)].seconds;
      if (free >= bound[Index(i)] && before != kNoTask) cause[Index(i)] = before;
      before = i;
      const double end = times_.start[Index(i)] + task.seconds;
      for (const TaskGraph::Edge& edge : task.next) {
        if (end + edge.delay <= bound[Index(edge.task)]) continue;
        bound[Index(edge.task)] = end + edge.delay;
        cause[Index(edge.task)] = i;
      }
      if (last == kNoTask || end > times_.start[Index(last)] + graph_.tasks[Index(last)].seconds) last = i;
    }
    std::vector<int> path;
    for (int i = last; i != kNoTask; i = cause[Index(i)]) path.push_back(i);
    std::ranges::reverse(path);
    return path;
  }

  bool Improve(int task) {
    const std::vector<int>& sequence = sequences_[Index(graph_.tasks[Index(task)].resource)];
    const auto position = static_cast<size_t>(std::ranges::find(sequence, task) - sequence.begin());
    if (position == 0) return false;
    if (TryMove(task, position, position - 1)) return true;
    size_t gap = position;  // where the resource is idle for the longest time before
    double longest = 0, end = 0;
    for (size_t p = 0; p < position; ++p) {
      const double idle = times_.start[Index(sequence[p])] - end;
      if (idle > longest) {
        longest = idle;
        gap = p;
      }
      end = times_.start[Index(sequence[p])] + graph_.tasks[Index(sequence[p])].seconds;
    }
    return gap + 1 < position && TryMove(task, position, gap);
  }

  bool TryMove(int task, size_t from, size_t to) {
    std::vector<int>& sequence = sequences_[Index(graph_.tasks[Index(task)].resource)];
    const auto at = [&](size_t position) { return sequence.begin() + static_cast<std::ptrdiff_t>(position); };
    std::rotate(at(to), at(from), at(from) + 1);
    if (std::optional<TaskOrder> order = Topological()) {
      TaskTimes times = TimeTasks(graph_, *order);
      const double cost = CostOf(times);
      if (cost < cost_ * kShorter) {
        order_ = *std::move(order);
        times_ = std::move(times);
        cost_ = cost;
        if (times_.seconds < best_seconds_) {
          best_seconds_ = times_.seconds;
          best_ = order_;
        }
        return true;
      }
    }
    std::rotate(at(to), at(to) + 1, at(from) + 1);
    return false;
  }

  // An order that agrees with the sequences; nullopt: they wait for one another in a circle.
  std::optional<TaskOrder> Topological() {
    --left_;
    missing_ = needs_;
    TaskOrder order;
    std::vector<size_t> next(sequences_.size(), 0);
    std::vector<int> ready;
    for (const std::vector<int>& sequence : sequences_) {
      if (!sequence.empty() && missing_[Index(sequence.front())] == 0) ready.push_back(sequence.front());
    }
    while (!ready.empty()) {
      const int i = ready.back();
      ready.pop_back();
      order.push_back(i);
      const TaskGraph::Task& task = graph_.tasks[Index(i)];
      const auto head = [&](int resource) {
        const std::vector<int>& sequence = sequences_[Index(resource)];
        return next[Index(resource)] < sequence.size() ? sequence[next[Index(resource)]] : kNoTask;
      };
      ++next[Index(task.resource)];
      const int follows = head(task.resource);
      const bool was_ready = follows != kNoTask && missing_[Index(follows)] == 0;
      if (was_ready) ready.push_back(follows);
      for (const TaskGraph::Edge& edge : task.next) {
        if (--missing_[Index(edge.task)] == 0 && head(graph_.tasks[Index(edge.task)].resource) == edge.task) {
          ready.push_back(edge.task);
        }
      }
    }
    if (order.size() < graph_.tasks.size()) return std::nullopt;
    return order;
  }

  const TaskGraph& graph_;
  int64_t left_;
  std::vector<int> needs_ = std::vector<int>(graph_.tasks.size(), 0);  // by task: edges that lead to it
  std::vector<int> missing_;
  Sequences sequences_;
  TaskOrder order_;
  TaskTimes times_;
  double cost_ = 0;
  TaskOrder best_ = order_;
  double best_seconds_ = 0;
};

}  // namespace

std::vector<double> UpwardRanks(const TaskGraph& graph) {
  std::vector<double> ranks(graph.tasks.size(), 0);
  for (size_t i = graph.tasks.size(); i-- > 0;) {
    for (const TaskGraph::Edge& edge : graph.tasks[i].next) {
      ranks[i] = std::max(ranks[i], edge.delay + ranks[Index(edge.task)]);
    }
    ranks[i] += graph.tasks[i].seconds;
  }
  return ranks;
}

TaskOrder OrderByRank(const TaskGraph& graph) {
  const std::vector<double> ranks = UpwardRanks(graph);
  TaskOrder order(graph.tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return ranks[Index(a)] > ranks[Index(b)]; });
  return order;
}

TaskOrder OrderAsReady(const TaskGraph& graph) {
  struct Event {
    double time = 0;
    int task = kNoTask;                                                     // becomes ready, or
    int resource = kNoTask;                                                 // becomes free
    bool operator<(const Event& other) const { return time > other.time; }  // the earliest is on top
  };
  std::priority_queue<Event> events;
  std::vector<int> missing(graph.tasks.size(), 0);
  std::vector<double> ready(graph.tasks.size(), 0);
  for (const TaskGraph::Task& task : graph.tasks) {
    for (const TaskGraph::Edge& edge : task.next) ++missing[Index(edge.task)];
  }
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    if (missing[i] == 0) events.push({0, static_cast<int>(i), kNoTask});
  }
  std::vector<std::set<std::pair<double, int>>> waiting(Index(graph.resources));
  std::vector<bool> busy(Index(graph.resources), false);
  TaskOrder order;
  while (!events.empty()) {
    const double now = events.top().time;
    std::set<int> touched;
    for (; !events.empty() && events.top().time == now; events.pop()) {
      const Event event = events.top();
      if (event.task == kNoTask) {
        busy[Index(event.resource)] = false;
        touched.insert(event.resource);
        continue;
      }
      const int resource = graph.tasks[Index(event.task)].resource;
      waiting[Index(resource)].emplace(now, event.task);
      touched.insert(resource);
    }
    for (const int resource : touched) {
      if (busy[Index(resource)] || waiting[Index(resource)].empty()) continue;
      const int i = waiting[Index(resource)].begin()->second;
      waiting[Index(resource)].erase(waiting[Index(resource)].begin());
      busy[Index(resource)] = true;
      order.push_back(i);
      const double end = now + graph.tasks[Index(i)].seconds;
      events.push({end, kNoTask, resource});
      for (const TaskGraph::Edge& edge : graph.tasks[Index(i)].next) {
        double& from = ready[Index(edge.task)];
        from = std::max(from, end + edge.delay);
        if (--missing[Index(edge.task)] == 0) events.push({from, edge.task, kNoTask});
      }
    }
  }
  return order;
}

TaskTimes TimeTasks(const TaskGraph& graph, const TaskOrder& order) {
  TaskTimes times{std::vector<double>(graph.tasks.size(), 0), 0};
  std::vector<double> free(Index(graph.resources), 0);
  for (const int i : order) {
    const TaskGraph::Task& task = graph.tasks[Index(i)];
    double& start = times.start[Index(i)];  // so far what its needs allow
    start = std::max(start, free[Index(task.resource)]);
    const double end = free[Index(task.resource)] = start + task.seconds;
    times.seconds = std::max(times.seconds, end);
    for (const TaskGraph::Edge& edge : task.next) {
      times.start[Index(edge.task)] = std::max(times.start[Index(edge.task)], end + edge.delay);
    }
  }
  return times;
}

TaskOrder RepairOrder(const TaskGraph& graph, const TaskOrder& order, int64_t evaluations) {
  return Repair(graph, order, evaluations).Run();
}

}  // namespace medley::sched
