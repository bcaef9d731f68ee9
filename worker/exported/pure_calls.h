// The operators that a model of a stranger may call: those that compute tensors from tensors and numbers and do nothing
// else. Otherwise a name in a file resolves to any function of LibTorch, such as one that maps a file into memory which
// the next call writes to. Pure.
#pragma once

#include <string_view>

namespace medley::worker::exported {

// Whether a node may have this target (Node::target): an operator of the list in any overload, in place too
// ("aten.relu_.default"), or arithmetic on symbolic numbers ("_operator.mul").
bool IsPureCall(std::string_view target);

// What to write instead of an operator that is refused, as the end of a sentence; empty: nothing better is known.
std::string_view InsteadOf(std::string_view target);

}  // namespace medley::worker::exported
