#include "reproductions/heterog/features.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

namespace medley::reproductions::heterog {
namespace {

constexpr double kTiny = 1e-30;
constexpr float kAmpleMemory = 3;  // of a device without a limit: as with 19 times the bytes of a replica

// A ratio, or its logarithm where it may have any order of magnitude.
float Ratio(double value, double of) { return static_cast<float>(std::clamp(value / std::max(of, kTiny), 0.0, 100.0)); }
float Log(double value, double of) {
  return static_cast<float>(std::log1p(std::clamp(value / std::max(of, kTiny), 0.0, 1e6)));
}

// For messages between two different devices, in seconds per byte.
struct Links {
  double mean = 0, least = 0;
};
Links LinksOf(const sched::DeviceProblem& problem) {
  double sum = 0, least = std::numeric_limits<double>::infinity();
  int count = 0;
  for (int a = 0; a < problem.devices(); ++a) {
    for (int b = 0; b < problem.devices(); ++b) {
      if (a == b) continue;
      const double speed = problem.Link(a, b).bytes_per_second;
      const double seconds = speed > 0 ? 1 / speed : 0;
      sum += seconds;
      least = std::min(least, seconds);
      ++count;
    }
  }
  return count == 0 ? Links{} : Links{sum / count, least};
}

// Sums of a group.
struct Sums {
  double operations = 0, weights = 0, outputs = 0;
  std::vector<double> seconds, activations;  // by device
};

class Reader {
 public:
  Reader(const sched::DeviceProblem& problem, const sched::OperationGroups& groups)
      : problem_(problem),
        groups_(groups),
        layers_(problem.layers()),
        devices_(problem.devices()),
        links_(LinksOf(problem)),
        samples_(problem.samples()) {
    all_weights_ = problem.WeightBytes(0, layers_);
    for (int i = 0; i < layers_; ++i) all_outputs_ += Output(i);
    for (int d = 0; d < devices_; ++d) whole_.push_back(problem.WorkOf(0, layers_, d).At(1));
    for (const double seconds : whole_) mean_whole_ += seconds / devices_;
  }

  AgentFeatures Read() {
    AgentFeatures out;
    out.operations = layers_;
    out.groups = groups_.count();
    out.devices = devices_;
    Operations(out);
    Edges(out);
    Groups(out);
    Devices(out);
    return out;
  }

 private:
  double Output(int i) const { return problem_.request().model.layers[static_cast<size_t>(i)].output_bytes * samples_; }

  void Operations(AgentFeatures& out) const {
    double seconds_before = 0, weights_before = 0;
    for (int i = 0; i < layers_; ++i) {
      double mean = 0, fastest = std::numeric_limits<double>::infinity(), slowest = 0, inputs = 0;
      for (int d = 0; d < devices_; ++d) {
        const double seconds = problem_.WorkOf(i, i + 1, d).At(1);
        mean += seconds / devices_;
        fastest = std::min(fastest, seconds);
        slowest = std::max(slowest, seconds);
      }
      for (const int input : problem_.inputs(i)) inputs += Output(input);
      const double weights = problem_.WeightBytes(i, i + 1);
      out.operation.insert(
          out.operation.end(),
          {Log(mean, mean_whole_ / layers_), Ratio(fastest, mean), Ratio(slowest, mean),
           Ratio(seconds_before, mean_whole_), Log(weights, all_weights_ / layers_),
           Ratio(weights_before, all_weights_), weights > 0 ? 1.0F : 0.0F, Log(Output(i), all_outputs_ / layers_),
           Log(inputs, all_outputs_ / layers_), Log(Output(i) * links_.mean, mean), Log(Output(i) * links_.least, mean),
           Log(weights * links_.mean, mean), Log(static_cast<double>(problem_.inputs(i).size()), 1),
           Ratio(i, layers_)});
      seconds_before += mean;
      weights_before += weights;
      out.group_of.push_back(groups_.group_of[static_cast<size_t>(i)]);
    }
  }

  void Edges(AgentFeatures& out) const {
    const auto add = [&](int from, int to) {
      out.from.push_back(from);
      out.to.push_back(to);
    };
    for (int i = 0; i < layers_; ++i) {
      add(i, i);
      for (const int input : problem_.inputs(i)) {
        add(input, i);
        add(i, input);
      }
    }
  }

  void Groups(AgentFeatures& out) const {
    const double slowest = *std::ranges::max_element(whole_), fastest = *std::ranges::min_element(whole_);
    for (const std::vector<int>& members : groups_.members) {
      const Sums sums = SumsOf(members);
      double mean = 0;
      for (const double seconds : sums.seconds) mean += seconds / devices_;
      out.group.insert(
          out.group.end(),
          {Ratio(sums.operations, layers_), Ratio(mean, mean_whole_), Ratio(sums.weights, all_weights_),
           Ratio(sums.outputs, all_outputs_), Log(sums.weights * links_.mean, mean / devices_), Log(devices_, 1),
           Log(all_weights_ * links_.mean, mean_whole_ / devices_), Ratio(slowest, fastest) / 10});
      for (int d = 0; d < devices_; ++d) {
        const auto at = static_cast<size_t>(d);
        const double memory = problem_.MemoryBytes(d);
        const double bytes = sums.weights * problem_.request().training.state_factor + sums.activations[at];
        out.pair.insert(out.pair.end(), {Ratio(sums.seconds[at], mean), Ratio(sums.seconds[at], mean_whole_),
                                         memory > 0 ? Ratio(bytes, memory) : 0.0F});
      }
    }
  }

  Sums SumsOf(const std::vector<int>& members) const {
    Sums sums;
    sums.seconds.assign(static_cast<size_t>(devices_), 0);
    sums.activations = sums.seconds;
    for (const int i : members) {
      ++sums.operations;
      sums.weights += problem_.WeightBytes(i, i + 1);
      sums.outputs += Output(i);
      for (int d = 0; d < devices_; ++d) {
        sums.seconds[static_cast<size_t>(d)] += problem_.WorkOf(i, i + 1, d).At(1);
        sums.activations[static_cast<size_t>(d)] += problem_.ActivationBytes(i, i + 1, d);
      }
    }
    return sums;
  }

  void Devices(AgentFeatures& out) const {
    double cards = 0;
    for (int d = 0; d < devices_; ++d) cards += problem_.CardSecondsPerByte(d) / devices_;
    const double fastest = *std::ranges::min_element(whole_);
    std::map<std::string, int> pools;  // devices so far
    for (int d = 0; d < devices_; ++d) {
      const model::Device& own = problem_.device(d);
      double beside = 0, alike = 0;
      for (int other = 0; other < devices_; ++other) {
        const bool same = !own.machine.empty() && own.machine == problem_.device(other).machine;
        beside += same || other == d ? 1 : 0;
        alike += own.pool == problem_.device(other).pool ? 1 : 0;
      }
      const double seconds = whole_[static_cast<size_t>(d)];
      const double replica =
          all_weights_ * problem_.request().training.state_factor + problem_.ActivationBytes(0, layers_, d) / devices_;
      const double memory = problem_.MemoryBytes(d);
      out.device.insert(
          out.device.end(),
          {Ratio(mean_whole_, seconds), Ratio(fastest, seconds), memory > 0 ? Log(memory, replica) : kAmpleMemory,
           Ratio(problem_.CardSecondsPerByte(d), cards), Ratio(beside, devices_), Ratio(alike, devices_)});
      const int twin = pools[own.pool]++ % kTwins;
      for (int t = 0; t < kTwins; ++t) out.device.push_back(t == twin ? 1.0F : 0.0F);
    }
  }

  const sched::DeviceProblem& problem_;
  const sched::OperationGroups& groups_;
  const int layers_, devices_;
  const Links links_;
  const double samples_;
  double all_weights_ = 0, all_outputs_ = 0, mean_whole_ = 0;
  std::vector<double> whole_;  // seconds of the model, by device
};

}  // namespace

AgentFeatures FeaturesOfGraph(const sched::DeviceProblem& problem, const sched::OperationGroups& groups) {
  return Reader(problem, groups).Read();
}

}  // namespace medley::reproductions::heterog
