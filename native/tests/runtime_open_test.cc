// What Runtime::Open does before any library is open; a program of its own, since a process opens
// one library.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "as2d/error.h"
#include "runtime_for_test.h"

namespace as2d {
namespace {

std::string OpenError(const std::filesystem::path& library) {
  try {
    Runtime::Open(library);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(RuntimeOpen, NamesALibraryThatCannotBeLoaded) {
  EXPECT_EQ(OpenError("/nonexistent/libonnxruntime.so")
                .find("/nonexistent/libonnxruntime.so: cannot be loaded: "),
            0u);

  const auto text = std::filesystem::temp_directory_path() / "as2d-runtime-open-test.so";
  std::ofstream(text) << "no library";
  const std::string error = OpenError(text);
  std::filesystem::remove(text);
  EXPECT_EQ(error.find(text.string() + ": cannot be loaded: "), 0u) << error;
}

TEST(RuntimeOpen, NamesALibraryThatIsAnother) {
  // The test library of ours: loadable, but without the runtime's one symbol.
  const std::string other = TestVariable("AS2D_TEST_OTHER_LIBRARY");
  EXPECT_EQ(OpenError(other), other + ": is not ONNX Runtime (it has no OrtGetApiBase)");
}

TEST(RuntimeOpen, NamesALibraryThatIsTooOld) {
  const std::string old = TestVariable("AS2D_TEST_OLD_LIBRARY");
  EXPECT_EQ(OpenError(old), old + ": ONNX Runtime 1.9.1 is too old; 1.17 or later is needed");
}

TEST(RuntimeOpen, KeepsNoTelemetryInTheUsersCache) {
  std::string cache = (std::filesystem::temp_directory_path() / "as2d-cache-XXXXXX").string();
  ASSERT_NE(mkdtemp(cache.data()), nullptr);
  ASSERT_EQ(setenv("XDG_CACHE_HOME", cache.c_str(), 1), 0);
  ASSERT_EQ(setenv("HOME", cache.c_str(), 1), 0);
  ASSERT_EQ(unsetenv("ORT_DISABLE_TELEMETRY"), 0);
  Runtime::Open(TestLibrary());
  EXPECT_TRUE(std::filesystem::is_empty(cache));
  std::filesystem::remove_all(cache);
}

TEST(RuntimeOpen, ClosesAndOpensAgain) {
  const std::weak_ptr<Runtime> first = Runtime::Open(TestLibrary());
  EXPECT_TRUE(first.expired());
  const auto second = Runtime::Open(TestLibrary());
  EXPECT_NE(second->env(), nullptr);
}

}  // namespace
}  // namespace as2d
