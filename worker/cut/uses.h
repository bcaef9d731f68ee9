// Which values a call of an exported program uses, and what a call is by its name. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "worker/exported/program.h"

namespace medley::worker::cut {

// Calls `use` with the name of each value among the arguments, in order.
void ForEachUse(const exported::Node& node, const std::function<void(const std::string&)>& use);
void ForEachUse(const exported::Argument& argument, const std::function<void(const std::string&)>& use);

// "aten.relu_.default" -> "relu_"; names of other namespaces stay whole.
std::string_view CallOf(const exported::Node& node);
// Its first argument is overwritten: "relu_", "copy_".
bool InPlace(const exported::Node& node);
// Its results share the memory of its first argument, or may: "view", "transpose", "reshape".
bool IsView(const exported::Node& node);
// It only checks what holds: "_assert_scalar".
bool IsAssertion(const exported::Node& node);
// Its result differs between calls: "dropout", "rand_like", attention with dropout.
bool IsRandom(const exported::Node& node);
// The value of an argument by name, or by place where it is given without; null if it is not there.
const exported::Argument* ArgumentOf(const exported::Node& node, std::string_view name);

}  // namespace medley::worker::cut
