// Divides segments into blocks and finds what moves between them. Pure.
#pragma once

#include <absl/status/status.h>

#include "common/model/forward.h"
#include "common/program/lower.h"
#include "common/program/program.h"

namespace medley::program {

// Fills blocks, values, flows, gradients and groups of `program`, whose form, micro-batches and layouts are set. A
// block ends where the layout or the synchronisation changes, and, counted from the end of a segment, before the
// operation whose gradients would make the block's larger than schedule.bucket_bytes. A program that does not train
// has no gradients and groups. Errors: ResourceExhausted when more than `max_instructions` are needed.
absl::Status MakeBlocks(const model::ExecutionPlan& plan, const model::Model& model, const Lowered& lowered,
                        int64_t max_instructions, Program& program);

}  // namespace medley::program
