// A program as text for people, and its hash. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/program/program.h"

namespace medley::program {

// Devices with their lists, one line each. `names`: of the operations; missing ones are numbers.
std::string Text(const Program& program, const std::vector<std::string>& names);
// One instruction: "F fc1..fc2 m0", "Send fc1 m0 -> gpu/0".
std::string Text(const Program& program, const Instruction& instruction, const std::vector<std::string>& names);
// "compute", "to gpu/0", "served by gpu/1", ...
std::string ListName(const Program& program, const List& list);
// "fc1..fc3" of a block.
std::string BlockName(const Program& program, int block, const std::vector<std::string>& names);

// 32 hexadecimal digits; equal for equal programs. Members of a job compare it before they train together.
std::string Hash(const Program& program);

}  // namespace medley::program
