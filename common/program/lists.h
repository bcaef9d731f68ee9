// The lists of instructions that each device executes one after the other. Pure.
#pragma once

#include "common/program/program.h"

namespace medley::program {

// Puts every instruction into the list of its device, kind and peer, in the order of the program.
void CutLists(Program& program);

}  // namespace medley::program
