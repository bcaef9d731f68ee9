// The processor time of this process.
#pragma once

namespace medley::base {

// All its threads' so far, in seconds. Thread-safe.
double ProcessorSeconds();

}  // namespace medley::base
