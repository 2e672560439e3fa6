#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "as2d/platform/cpu_mask.h"

namespace as2d {

/// Whether this platform can bind a thread to cores at all (Linux and Android can; macOS cannot).
bool CanPinThreads();

/// Cores on which the calling thread may run, as the kernel reports them: what was asked for cut
/// down by cpusets and hot-unplug. nullopt where the platform cannot tell.
std::optional<CpuMask> ReadAffinity();

/// The same of the process's first thread: what the process was given, wherever its other threads
/// have been put since.
std::optional<CpuMask> ReadProcessAffinity();

/// Restricts the calling thread to `cores`. False: refused, and `error`, if given, says why (the
/// text of errno, or that the platform cannot). True does not promise the exact mask: the kernel
/// drops cores outside the cpuset in silence, so read it back.
bool SetAffinity(const CpuMask& cores, std::string* error = nullptr);

/// Names the calling thread for top, perf and debuggers. The kernel keeps 15 bytes; the rest is
/// cut. False where the platform refuses.
bool SetThreadName(std::string_view name);

/// The calling thread's name; "" where the platform cannot tell.
std::string ThreadName();

/// The kernel's id of the calling thread (/proc/self/task/<id>); 0 where the platform has none.
std::int64_t ThreadId();

}  // namespace as2d
