// For tests that need a GPU: they run where there is one, and elsewhere say loudly that they did not.
#pragma once

#include <gtest/gtest.h>

#include "common/base/status.h"
#include "worker/device/device.h"

#define MEDLEY_NEEDS_GPU()                                                           \
  do {                                                                               \
    if (const auto gpu = ::medley::worker::device::OpenGpu(); !gpu.ok()) {           \
      GTEST_SKIP() << "NOT RUN ON A GPU: " << ::medley::base::Message(gpu.status()); \
    }                                                                                \
  } while (false)
