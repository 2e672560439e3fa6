// What the operators see of the runtime.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include "as2d/error.h"
#include "as2d/platform/crew.h"
#include "as2d/runtime/ort_abi.h"

namespace as2d {

namespace entry = ort::entry;

inline constexpr std::size_t kPanel = 16;  // outputs, or positions, side by side in a tile

inline std::size_t Panels(std::size_t count) { return (count + kPanel - 1) / kPanel; }

// The runtime hands work over and takes it back in order, which ThreadSanitizer cannot see: the
// library is not instrumented. It is told here; elsewhere these are nothing.
#ifdef __SANITIZE_THREAD__
inline void ReleasedTo(void* object) { __tsan_release(object); }
inline void AcquiredFrom(void* object) { __tsan_acquire(object); }
#else
inline void ReleasedTo(void*) {}
inline void AcquiredFrom(void*) {}
#endif

/// What an operator sees of one call. The table is that of the library which calls: a process may
/// hold more than one copy of it.
class Call {
 public:
  Call(const ort::Api& api, OrtKernelContext* context) : api_(api), context_(context) {}

  template <typename T>
  struct Values {
    T* data = nullptr;
    std::vector<std::int64_t> shape;

    /// All dimensions but the last.
    std::size_t rows() const {
      std::size_t rows = 1;
      for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= static_cast<std::size_t>(shape[i]);
      return rows;
    }
    std::size_t last() const { return shape.empty() ? 1 : static_cast<std::size_t>(shape.back()); }
    std::size_t size() const { return rows() * last(); }
    std::size_t at(std::size_t i) const { return static_cast<std::size_t>(shape.at(i)); }
  };

  /// An optional input that the graph leaves out has no data.
  template <typename T>
  Values<const T> Input(std::size_t index) const {
    if (index >= inputs()) return {};
    const OrtValue* value = nullptr;
    Check(api_.Call<entry::KernelContext_GetInput>(static_cast<const OrtKernelContext*>(context_),
                                                   index, &value));
    if (value == nullptr) return {};
    Values<const T> values;
    // The interface has no read-only form of this call.
    values.data = static_cast<const T*>(Data(const_cast<OrtValue*>(value)));
    values.shape = ShapeOf(value);
    return values;
  }

  template <typename T>
  T* Output(std::size_t index, const std::vector<std::int64_t>& shape) {
    OrtValue* value = nullptr;
    Check(api_.Call<entry::KernelContext_GetOutput>(context_, index, shape.data(), shape.size(),
                                                    &value));
    return static_cast<T*>(Data(value));
  }

  /// Calls `work(i)` for i in [0, count) on the lane's threads and whoever helps it, or on the
  /// session's where there is no lane; returns when all are done.
  template <typename Work>
  void Parallel(std::size_t count, Work work) {
    if (count == 1) return work(std::size_t{0});
    struct Shared {
      Work& work;
      std::atomic<bool> failed{false};
    } shared{work};
    const auto run = [](void* object, std::size_t i) {
      AcquiredFrom(object);
      Shared& ours = *static_cast<Shared*>(object);
      try {
        ours.work(i);
      } catch (...) {  // nothing may be thrown through the runtime, least of all on its threads
        ours.failed = true;
      }
      ReleasedTo(object);
    };
    if (CrewLane* const lane = CrewLane::Current()) {
      lane->Parallel(count, run, &shared);
      if (shared.failed) throw Error("out of memory");
      return;
    }
    ReleasedTo(&shared);
    Check(api_.Call<entry::KernelContext_ParallelFor>(
        static_cast<const OrtKernelContext*>(context_),
        static_cast<void (*)(void*, std::size_t)>(run), count, std::size_t{0},
        static_cast<void*>(&shared)));
    AcquiredFrom(&shared);
    if (shared.failed) throw Error("out of memory");
  }

 private:
  void Check(OrtStatus* status) const {
    if (status == nullptr) return;
    const std::string message = api_.Call<entry::GetErrorMessage>(status);
    api_.Call<entry::ReleaseStatus>(status);
    throw Error(message);
  }

  std::size_t inputs() const {
    std::size_t count = 0;
    Check(api_.Call<entry::KernelContext_GetInputCount>(
        static_cast<const OrtKernelContext*>(context_), &count));
    return count;
  }

  void* Data(OrtValue* value) const {
    void* data = nullptr;
    Check(api_.Call<entry::GetTensorMutableData>(value, &data));
    return data;
  }

  std::vector<std::int64_t> ShapeOf(const OrtValue* value) const {
    OrtTensorTypeAndShapeInfo* info = nullptr;
    Check(api_.Call<entry::GetTensorTypeAndShape>(value, &info));
    std::size_t rank = 0;
    std::vector<std::int64_t> shape;
    OrtStatus* status = api_.Call<entry::GetDimensionsCount>(
        static_cast<const OrtTensorTypeAndShapeInfo*>(info), &rank);
    if (status == nullptr) {
      shape.resize(rank);
      status = api_.Call<entry::GetDimensions>(static_cast<const OrtTensorTypeAndShapeInfo*>(info),
                                               shape.data(), rank);
    }
    api_.Call<entry::ReleaseTensorTypeAndShapeInfo>(info);
    Check(status);
    return shape;
  }

  const ort::Api& api_;
  OrtKernelContext* const context_;
};

inline void Require(bool condition, const char* what) {
  if (!condition) throw Error(what);
}

/// Attributes of a node, read once.
class Attributes {
 public:
  Attributes(const ort::Api& api, const OrtKernelInfo* info) : api_(api), info_(info) {}

  std::size_t Number(const char* name) const {
    const std::size_t value = Number(name, 0);
    if (value == 0) throw Error(std::string("attribute '") + name + "' is missing or zero");
    return value;
  }

  /// `otherwise` if there is no such attribute.
  std::size_t Number(const char* name, std::size_t otherwise) const {
    std::int64_t value = 0;
    if (OrtStatus* status = api_.Call<entry::KernelInfoGetAttribute_int64>(info_, name, &value)) {
      api_.Call<entry::ReleaseStatus>(status);
      return otherwise;
    }
    Require(value >= 0 && value < (1 << 20), "an attribute is out of range");
    return static_cast<std::size_t>(value);
  }

 private:
  const ort::Api& api_;
  const OrtKernelInfo* const info_;
};

}  // namespace as2d
