// What the networks of tapp know of a layer (TAPP, section 4.1). Pure.
#pragma once

#include <array>
#include <vector>

#include "scheduler-service/devices/problem.h"

namespace medley::reproductions::tapp {

inline constexpr int kLayerKinds = 6;    // the paper's dictionary: five names and Unknown
inline constexpr int kNameWidth = 16;    // numbers of a name, learned for each kind
inline constexpr int kMetricWidth = 12;  // three metrics of 4 numbers
inline constexpr int kNextWidth = 4;     // two next layers of 2 numbers
inline constexpr int kLayerWidth = kNameWidth + kMetricWidth + kNextWidth;  // 32

// Index of Convolution, Relu, Pooling, Fully-Connected, Padding or Unknown.
int KindIndex(const std::string& kind);

struct LayerFeatures {
  int kind = 0;
  // Parameters in MB, computation in GFLOP and output in MB, of 4 numbers each: the value over the largest of all
  // layers, the same of the logarithms of 1 + value, the part of the sum over all layers, and the part of the sum up
  // to here. The computation is measured by its seconds on the cluster's first device, as profiles have no operation
  // counts.
  std::array<float, kMetricWidth> metrics{};
  // For the first two layers that use its output: their number from 1 over the number of layers, and 1. -0.1 and -0.1
  // where there is none.
  std::array<float, kNextWidth> next{};
  std::vector<int> consumers;  // all layers that use its output
};

std::vector<LayerFeatures> FeaturesOf(const sched::DeviceProblem& problem);

}  // namespace medley::reproductions::tapp
