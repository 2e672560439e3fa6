// Graphs that others have published, used as they are. Private to the models' sources.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "as2d/error.h"
#include "as2d/platform/worker_pool.h"
#include "as2d/runtime/session.h"

namespace as2d {

/// Loads one onto the lane of `pool`: the runtime's own operators share their work out over its
/// threads. Throws Error, naming the file.
inline std::shared_ptr<Session> LoadPublished(std::shared_ptr<const Runtime> runtime,
                                              const std::filesystem::path& file,
                                              std::shared_ptr<WorkerPool> pool) {
  SessionOptions options;
  options.pool = std::move(pool);
  return Session::Load(std::move(runtime), file, options);
}

/// Throws Error unless `value` of the graph is float32.
inline void RequireFloat(const Session& graph, const ValueInfo& value) {
  if (value.type == ElementType::kFloat32) return;
  throw Error(graph.file().string() + ": '" + value.name +
              "' is not float32, and there is no driver for another type; choose the export with " +
              "the suffix _q4 or with none");
}

}  // namespace as2d
