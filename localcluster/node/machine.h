// What the machine has, which is what a node that is not simulated may offer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace medley::kube {

struct Machine {
  int cpus = 1;              // on which this process may run
  int64_t memory_bytes = 0;  // physical memory
  int gpus = 0;              // NVIDIA devices

  // "2 CPUs, 23.4 GiB of memory and no GPU".
  std::string ToString() const;
};

// Reads the number of CPUs and the memory from the kernel, and counts the GPUs in `devices`.
Machine ThisMachine(const std::filesystem::path& devices = "/dev");

}  // namespace medley::kube
