// Divides segments into blocks and finds what moves between them. Pure.
#pragma once

#include "common/model/model.h"
#include "common/program/lower.h"
#include "common/program/program.h"

namespace medley::program {

// Fills blocks, values, flows, gradients and groups of `program`, whose layouts are set. A block ends where the layout
// or the synchronisation changes, and, counted from the end of a segment, before the operation whose gradients would
// make the block's larger than schedule.bucket_bytes. Without `train` it is
// the same without gradients and groups.
void MakeBlocks(const model::ExecutionPlan& plan, const model::Model& model, const Lowered& lowered, bool train,
                Program& program);

}  // namespace medley::program
