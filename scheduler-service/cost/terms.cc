#include "scheduler-service/cost/terms.h"

#include <algorithm>

namespace medley::sched {

double PlacedTerms::ComputeSeconds(int units) const {
  double seconds = 0;
  for (const StageTerms& terms : all()) seconds = std::max(seconds, terms.ComputeSeconds(units));
  return seconds;
}

double PlacedTerms::CommSeconds(int units) const {
  double seconds = 0;
  for (const StageTerms& terms : all()) seconds = std::max(seconds, terms.CommSeconds(units));
  return seconds;
}

}  // namespace medley::sched
