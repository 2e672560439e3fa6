#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "as2d/runtime/ort.h"

namespace as2d {

/// Value of an environment variable that ctest sets. Throws if it is not set.
inline std::string TestVariable(const char* name) {
  const char* const value = std::getenv(name);
  if (!value || !*value) throw std::runtime_error(std::string(name) + " is not set; run ctest");
  return value;
}

/// The library that the tests run on.
inline std::filesystem::path TestLibrary() { return TestVariable("AS2D_ORT_LIBRARY"); }

/// The one runtime of this test program.
inline std::shared_ptr<Runtime> TestRuntime() {
  static const std::shared_ptr<Runtime> runtime = Runtime::Open(TestLibrary());
  return runtime;
}

/// A file of tests/data.
inline std::filesystem::path TestData(const std::string& name) {
  return std::filesystem::path(TestVariable("AS2D_TEST_DATA")) / name;
}

}  // namespace as2d
