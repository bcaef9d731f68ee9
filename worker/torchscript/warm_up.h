#pragma once

namespace medley::worker::torchscript {

// Lets LibTorch look at the processor and its files, which it does at the first computation, on one thread.
void WarmUp();

}  // namespace medley::worker::torchscript
