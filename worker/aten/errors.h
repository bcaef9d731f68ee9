// What LibTorch throws, as an absl::Status with one sentence: without the stack that its text ends with.
#pragma once

#include <absl/status/status.h>

#include <exception>
#include <string_view>

namespace medley::worker::aten {

// "WHAT: TEXT". ResourceExhausted, with what to do, where the GPU has too little memory; Internal otherwise.
absl::Status FromTorch(const std::exception& error, std::string_view what);

}  // namespace medley::worker::aten
