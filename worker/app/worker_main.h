// What the programs medley-worker and medley-worker-torch do.
#pragma once

#include "worker/model/make_block.h"

namespace medley::worker {

// Parses the command line, runs the role and returns the exit code (README.md). `torch`: computes models that came from
// PyTorch, too; null in medley-worker, which becomes medley-worker-torch when a role must compute one. Call it first in
// main(): no thread may exist.
int WorkerMain(int argc, char** argv, const BlockMaker& torch);

}  // namespace medley::worker
