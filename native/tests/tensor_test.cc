#include "as2d/runtime/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "as2d/error.h"
#include "runtime_for_test.h"

namespace as2d {
namespace {

std::string ErrorOf(auto action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tensor, IsZeroedAndAligned) {
  const Tensor tensor(TestRuntime(), ElementType::kFloat32, {2, 3, 5});
  EXPECT_EQ(tensor.size(), 30u);
  EXPECT_EQ(tensor.bytes(), 120u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0u);
  EXPECT_TRUE(std::ranges::all_of(tensor.values<float>(), [](float x) { return x == 0; }));
  EXPECT_EQ(static_cast<void*>(tensor.values<float>().data()), tensor.data());
}

TEST(Tensor, HasEveryElementType) {
  const struct {
    ElementType type;
    std::size_t bytes;
    std::string name;
  } cases[] = {
      {ElementType::kFloat32, 4, "float32"}, {ElementType::kUint8, 1, "uint8"},
      {ElementType::kInt8, 1, "int8"},       {ElementType::kInt32, 4, "int32"},
      {ElementType::kInt64, 8, "int64"},     {ElementType::kBool, 1, "bool"},
  };
  for (const auto& c : cases) {
    const Tensor tensor(TestRuntime(), c.type, {3});
    EXPECT_EQ(tensor.bytes(), 3 * c.bytes);
    EXPECT_EQ(ElementName(c.type), c.name);
  }
  EXPECT_EQ(ElementBytes(ElementType::kUnknown), 0u);
}

TEST(Tensor, ScalarAndEmpty) {
  const Tensor scalar(TestRuntime(), ElementType::kInt32, {});
  EXPECT_EQ(scalar.size(), 1u);
  const Tensor nothing(TestRuntime(), ElementType::kFloat32, {1, 8, 0, 36});
  EXPECT_EQ(nothing.size(), 0u);
  EXPECT_FALSE(nothing.empty());
  EXPECT_TRUE(Tensor().empty());
}

TEST(Tensor, ViewsShareThePrefixAndKeepTheMemory) {
  Tensor buffer(TestRuntime(), ElementType::kInt64, {32});
  Tensor rows = buffer.View({1, 8});
  EXPECT_EQ(rows.data(), buffer.data());
  EXPECT_EQ(rows.shape(), (Shape{1, 8}));
  buffer.values<std::int64_t>()[7] = 42;
  buffer = Tensor();
  EXPECT_EQ(rows.values<std::int64_t>()[7], 42);
  EXPECT_EQ(rows.View({2}).size(), 2u);
}

TEST(Tensor, AViewMayBeginFurtherOn) {
  const Tensor buffer(TestRuntime(), ElementType::kInt32, {3, 4});
  buffer.values<std::int32_t>()[8] = 42;
  const Tensor last = buffer.View({4}, 8);
  EXPECT_EQ(last.values<std::int32_t>()[0], 42);
  EXPECT_EQ(last.View({1}, 3).data(), buffer.values<std::int32_t>().data() + 11);
  EXPECT_EQ(buffer.View({0}, 12).size(), 0u);
  for (const std::size_t first : {std::size_t{9}, std::size_t{12}, ~std::size_t{0}}) {
    EXPECT_EQ(ErrorOf([&] { buffer.View({4}, first); }),
              "tensor [3,4]: too small for a view of [4]");
  }
  EXPECT_EQ(ErrorOf([&] { buffer.View({0}, 13); }), "tensor [3,4]: too small for a view of [0]");
}

TEST(Tensor, RefusesWhatItCannotBe) {
  const auto runtime = TestRuntime();
  const Tensor tensor(runtime, ElementType::kFloat32, {2, 4});
  EXPECT_EQ(ErrorOf([&] { tensor.View({9}); }), "tensor [2,4]: too small for a view of [9]");
  EXPECT_EQ(ErrorOf([&] { tensor.values<std::int64_t>(); }),
            "tensor [2,4]: holds float32, not int64");
  EXPECT_EQ(ErrorOf([&] { Tensor(runtime, ElementType::kFloat32, {2, -2}); }),
            "tensor [2,-2]: a dimension is negative");
  EXPECT_EQ(ErrorOf([&] { Tensor(runtime, ElementType::kUnknown, {2}); }),
            "tensor [2]: unknown type");
  EXPECT_EQ(ErrorOf([&] {
              Tensor(runtime, ElementType::kInt64, {std::numeric_limits<std::int64_t>::max()});
            }),
            "tensor [9223372036854775807]: too large");
  EXPECT_EQ(ErrorOf([] { Tensor().View({}); }), "tensor: a view of nothing");
}

TEST(Tensor, ShapesReadAsTheGraphHasThem) {
  EXPECT_EQ(ShapeText(Shape{1, -1, 448}), "[1,?,448]");
  EXPECT_EQ(ShapeText(Shape{}), "[]");
}

}  // namespace
}  // namespace as2d
