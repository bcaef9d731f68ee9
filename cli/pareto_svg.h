// A front of cost and throughput as a drawing: SVG 1.1, one file, no script, no outside resource.
//
// Pure.
#pragma once

#include <string>
#include <vector>

namespace medley::cli {

struct PlotPoint {
  double throughput = 0;  // samples/s
  double usd = 0;         // of the whole job
  std::string title;      // shown when pointed at
  bool marked = false;    // the optimum
};

// `points` ascend in both coordinates and are finite; none: axes alone.
std::string ParetoSvg(const std::string& heading, const std::vector<PlotPoint>& points);

// Round numbers from at most `low` to at least `high`, about `wanted` of them; low <= high.
std::vector<double> Ticks(double low, double high, int wanted);

}  // namespace medley::cli
