// Cost and throughput of a choice, for inner loops. Immutable value.
#pragma once

namespace medley::sched {

struct Score {
  double throughput = 0;
  double hourly = 0;  // USD/h
  double cost = 0;    // USD
  int server_units = 0;
};

}  // namespace medley::sched
