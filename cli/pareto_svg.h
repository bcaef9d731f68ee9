// Draws a Pareto front of cost and throughput as SVG 1.1: one file without scripts or external resources. Pure.
#pragma once

#include <string>
#include <vector>

namespace medley::cli {

struct PlotPoint {
  double throughput = 0;  // samples/s
  double usd = 0;         // cost of the whole job
  std::string title;      // tooltip
  bool marked = false;    // true for the cheapest plan
};

// `points` are finite and ascend in both coordinates. Without points draws only the axes.
std::string ParetoSvg(const std::string& heading, const std::vector<PlotPoint>& points);

// Returns about `wanted` round numbers; the first is at most `low`, the last at least `high`. low <= high.
std::vector<double> Ticks(double low, double high, int wanted);

}  // namespace medley::cli
