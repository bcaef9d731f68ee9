// The objects that the benchmark creates in the cluster. Pure.
#pragma once

#include <string>

#include "kube/object.h"

namespace medley::bench {

inline constexpr int kPodsPerJob = 4;   // a coordinator and three trainers of pool "cpu"
inline constexpr int kNamespaces = 10;  // as in KubeRay's performance tests

std::string NamespaceName(int index);
std::string JobName(int index);
// The namespace of job `index`; jobs are distributed round-robin.
kube::Key JobKey(int index);
// The index of the job to which a pod belongs.
int JobIndex(const std::string& pod);

// Node `index`, large enough for all pods, with the label medley.dev/bench. Write its status to the status subresource.
kube::Object BenchNode(int index);
kube::Json BenchNodeStatus();
// Pool "cpu" at a fixed price, or "gpu", whose price comes from the feed.
kube::Object BenchPool(const std::string& name);
// A suspended job. With `follows_prices`, the operator replans it when a price changes.
kube::Object BenchJob(int index, bool follows_prices);
// The profile for all jobs of a namespace on a pool, so that the operator does not start profilers.
kube::Object BenchProfile(const std::string& ns, const std::string& pool);
// A pod that does not belong to Medley, already bound to a node.
kube::Object OtherPod(int index, int nodes);
// The price file with the price of pool "gpu", in USD per unit and hour.
std::string PriceFile(double gpu);

}  // namespace medley::bench
