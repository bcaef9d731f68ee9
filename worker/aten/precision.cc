#include "worker/aten/precision.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <ATen/autocast_mode.h>
#include <torch/version.h>
#pragma GCC diagnostic pop

namespace medley::worker::aten {
namespace {

// LibTorch 2 has one function for all kinds of devices.
void SetAutocast(at::DeviceType place, bool on) {
#if TORCH_VERSION_MAJOR >= 2
  at::autocast::set_autocast_dtype(place, at::kBFloat16);
  at::autocast::set_autocast_enabled(place, on);
#else
  static_cast<void>(place);  // there is no other
  at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
  at::autocast::set_cpu_enabled(on);
#endif
}

}  // namespace

bool ProcessorHasBfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

Precision PrecisionOn(at::DeviceType place, Precision wanted, bool has) {
  if (place == at::kCUDA) return wanted;
  return place == at::kCPU && wanted == Precision::kBfloat16 && has ? wanted : Precision::kFloat32;
}

void AllowTf32(bool allowed) {
  at::globalContext().setAllowTF32CuBLAS(allowed);
  at::globalContext().setAllowTF32CuDNN(allowed);
}

InPrecision::InPrecision(at::DeviceType place, Precision precision)
    : place_(place), on_(precision == Precision::kBfloat16) {
  if (!on_) return;
  at::autocast::increment_nesting();
  SetAutocast(place_, true);
}

InPrecision::~InPrecision() {
  if (!on_) return;
  SetAutocast(place_, false);
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();  // the parameters of this pass
}

}  // namespace medley::worker::aten
