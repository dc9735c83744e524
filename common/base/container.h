// What the container of this process leaves it of the machine: limits of control groups (cgroups v1
// and v2), as Docker, Kubernetes, Slurm and systemd set them. Threads: safe.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace traind {

struct ContainerLimits {
  // The least of the process's group and those above it.
  int64_t memory = std::numeric_limits<int64_t>::max();  // bytes; the maximum: no limit
  double cores = std::numeric_limits<double>::infinity();
  // Bytes that count against `memory`, without files that the kernel can drop; 0 without a limit.
  int64_t memory_used = 0;
};

// What is missing or cannot be read sets no limit. root: "" is this machine; tests give a folder
// with the same files below it.
ContainerLimits ReadContainerLimits(const std::string& root = "");

// Bytes of memory that this process and others in its container may have.
int64_t UsableMemory(const std::string& root = "");
// Bytes of them that are free now; files that the kernel can drop count as free.
int64_t AvailableMemory(const std::string& root = "");
// Processes of this container, or of this machine, that the kernel has ended so far because memory
// ran out.
int64_t OutOfMemoryKills(const std::string& root = "");

}  // namespace traind
