// Calls that do not go to the operator of their name: those that follow the mode of a run, those whose random numbers
// must not depend on the placement, and those that this LibTorch lacks.
#pragma once

#include <string_view>
#include <vector>

#include "worker/aten/call_list.h"

namespace medley::worker::aten {

struct AdaptedCall {
  std::vector<std::string_view> arguments;  // their names, in the order of the stack
  std::vector<c10::IValue> defaults;        // of the last of them
  CallList::Function function;              // replaces the arguments on the stack by the results
};

// `target`: "aten.dropout.default"; `known`: this LibTorch has the operator. Null: call the operator.
const AdaptedCall* FindAdapted(std::string_view target, bool known);

}  // namespace medley::worker::aten
