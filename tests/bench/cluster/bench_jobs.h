// What the bench puts into the cluster. Pure.
#pragma once

#include <string>

#include "kube/object.h"

namespace medley::bench {

inline constexpr int kPodsPerJob = 4;   // a coordinator and three trainers of pool "cpu"
inline constexpr int kNamespaces = 10;  // as in KubeRay's performance tests

std::string NamespaceName(int index);
std::string JobName(int index);
// In its namespace: they are taken in turn.
kube::Key JobKey(int index);
// The job that a pod of it belongs to.
int JobIndex(const std::string& pod);

// Node `index`: room for all, labelled medley.dev/bench. Its status goes by the status subresource.
kube::Object BenchNode(int index);
kube::Json BenchNodeStatus();
// Pool "cpu" at a fixed price, or "gpu", whose price comes from the feed.
kube::Object BenchPool(const std::string& name);
// Suspended. `follows_prices`: it is planned again when a price changes.
kube::Object BenchJob(int index, bool follows_prices);
// The profile of every bench job of a namespace on a pool, so that none is measured.
kube::Object BenchProfile(const std::string& ns, const std::string& pool);
// A pod of somebody else, already bound.
kube::Object OtherPod(int index, int nodes);
// The price file: USD per hour of a unit of pool "gpu".
std::string PriceFile(double gpu);

}  // namespace medley::bench
