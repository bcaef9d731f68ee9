// What is known of operators, types and lines of TorchScript. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "worker/torchscript/item.h"
#include "worker/torchscript/program_writer.h"

namespace medley::worker::torchscript {

// Operators that tell something of a tensor other than its numbers.
const std::set<std::string>& ShapeQueries();

// Why it is not enough to run a node with several batches: it changes a list, or the shape of its result follows from
// data. Empty: it is enough.
std::string WhatRunsDoNotShow(const torch::jit::Node& node, const std::vector<Item>& inputs);

// Arithmetic on numbers that depend on the batch: the names that exported programs have for it.
const std::map<std::string, std::string>& Arithmetic();

// "torch.nn.modules.conv.Conv2d" of an object of the class "__torch__.torch.nn.modules.conv.___torch_mangle_3.Conv2d".
std::string TypeName(const c10::IValue& object);

// File and line of a node in the user's program, without its module.
Place SourceOf(const torch::jit::Node& node);

// Traces have one operator for all convolutions; exported programs call them by their names. False: its weight or form
// is not known.
bool NameConvolution(std::string& base, std::string& overload, std::vector<std::pair<std::string, Item>>& arguments);

}  // namespace medley::worker::torchscript
