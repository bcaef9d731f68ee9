// What to do when a plan needs more units of a pool than may be used: the planner knows a number only, which may be
// that of spec.limit, of the nodes or of a quota. Pure.
#pragma once

#include <string>

namespace medley::ops::lifecycle {

// `words`: the planner's sentence, which advises to raise the limit. `needed`: units; `limit`: spec.limit of the pool;
// `bound`: what bounds the units (PoolView::bound). Where that is not the limit, the sentence does not ask to raise it
// to what it is.
std::string WithLimitAdvice(std::string words, const std::string& pool, double needed, int limit,
                            const std::string& bound);

}  // namespace medley::ops::lifecycle
