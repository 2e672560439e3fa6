// The operators behind the runtime: what a graph may claim, and what they make of it.
#include "as2d/kernels/operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "as2d/error.h"
#include "as2d/runtime/session.h"
#include "runtime_for_test.h"

namespace as2d {
namespace {

// Enough of the protocol buffer encoding to write a graph of one node.
std::string Varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes += static_cast<char>(value % 128 + 128);
  bytes += static_cast<char>(value);
  return bytes;
}
std::string Field(int number, std::uint64_t value) {
  return Varint(static_cast<std::uint64_t>(number) * 8) + Varint(value);
}
std::string Field(int number, const std::string& bytes) {
  return Varint(static_cast<std::uint64_t>(number) * 8 + 2) + Varint(bytes.size()) + bytes;
}

/// A value whose rank is given and whose dimensions are left open.
std::string Value(const std::string& name, ElementType type, std::size_t rank) {
  std::string shape;
  for (std::size_t i = 0; i < rank; ++i) shape += Field(1, std::string());
  const std::string tensor = Field(1, static_cast<std::uint64_t>(type)) + Field(2, shape);
  return Field(1, name) + Field(2, Field(1, tensor));
}

class OperatorsTest : public testing::Test {
 protected:
  /// Runs a graph of one operator on `inputs`; outputs are `o0`, `o1`, ... of the given types.
  std::vector<Tensor> Run(const std::string& op, const std::vector<Tensor>& inputs,
                          const std::vector<ElementType>& outputs,
                          const std::map<std::string, std::uint64_t>& attributes = {}) {
    std::string node;
    std::string graph;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      names.push_back(std::string("i").append(std::to_string(i)));
      node += Field(1, names.back());
      graph += Field(11, Value(names.back(), inputs[i].type(), inputs[i].shape().size()));
    }
    std::vector<const char*> wanted;
    static constexpr const char* kOutputs[] = {"o0", "o1", "o2", "o3"};
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      wanted.push_back(kOutputs[i]);
      node += Field(2, std::string(kOutputs[i]));
      graph += Field(12, Field(1, std::string(kOutputs[i])) +
                             Field(2, Field(1, Field(1, static_cast<std::uint64_t>(outputs[i])))));
    }
    node += Field(4, op) + Field(7, std::string(kOperatorDomain));
    for (const auto& [name, value] : attributes) {
      constexpr std::uint64_t kInt = 2;
      node += Field(5, Field(1, name) + Field(3, value) + Field(20, kInt));
    }
    const std::string model = Field(1, 8) +
                              Field(8, Field(1, std::string(kOperatorDomain)) + Field(2, 1)) +
                              Field(7, Field(1, node) + Field(2, std::string("one")) + graph);
    const std::filesystem::path file =
        std::filesystem::path(testing::TempDir()) / ("operators_test_" + op + ".onnx");
    std::ofstream(file, std::ios::binary) << model;
    const auto session = Session::Load(runtime_, file, {});
    std::filesystem::remove(file);
    std::vector<Session::Input> given;
    for (std::size_t i = 0; i < inputs.size(); ++i) given.push_back({names[i].c_str(), &inputs[i]});
    return session->Run(given, wanted);
  }

  Tensor Floats(Shape shape) { return Tensor(runtime_, ElementType::kFloat32, std::move(shape)); }

  std::vector<Tensor> OneTensor(Shape shape) {
    std::vector<Tensor> tensors;
    tensors.push_back(Floats(std::move(shape)));
    return tensors;
  }

  std::vector<Tensor> Linear(Shape x, Shape weight, Shape scale, Shape bias) {
    std::vector<Tensor> inputs;
    inputs.push_back(Floats(std::move(x)));
    inputs.emplace_back(runtime_, ElementType::kInt8, std::move(weight));
    inputs.push_back(Floats(std::move(scale)));
    inputs.push_back(Floats(std::move(bias)));
    return Run("Linear", inputs, {ElementType::kFloat32});
  }

  /// Two rows with the given places.
  std::vector<Tensor> SelfAttention(Shape past, const std::vector<std::int32_t>& places) {
    std::vector<Tensor> inputs;
    inputs.push_back(Floats({1, 2, 48}));
    inputs.push_back(Floats(past));
    inputs.push_back(Floats(past));
    inputs.push_back(Lines(places));
    return Run("SelfAttention", inputs, std::vector<ElementType>(3, ElementType::kFloat32),
               {{"heads", 1}});
  }

  /// Places as a tensor of four numbers a line.
  Tensor Lines(const std::vector<std::int32_t>& places) {
    Tensor lines(runtime_, ElementType::kInt32,
                 {static_cast<std::int64_t>(places.size()) / 4, std::int64_t{4}});
    std::copy(places.begin(), places.end(), lines.values<std::int32_t>().begin());
    return lines;
  }

  /// Two rows over 16 positions; the caches have `slots`.
  std::vector<Tensor> CrossAttention(std::int64_t slots, const std::vector<std::int32_t>& places) {
    std::vector<Tensor> inputs;
    inputs.push_back(Floats({1, 2, 16}));
    inputs.emplace_back(runtime_, ElementType::kUint8, Shape{slots, 1, 1, 4, 16, 4});
    inputs.push_back(Floats({slots, 1, 16}));
    inputs.emplace_back(runtime_, ElementType::kInt8, Shape{slots, 1, 1, 4, 16, 4});
    inputs.push_back(Floats({slots, 1, 16}));
    inputs.push_back(Lines(places));
    return Run("CrossAttention", inputs, {ElementType::kFloat32},
               {{"heads", 1}, {"positions", 16}});
  }

  std::vector<Tensor> Choose(Shape logits, Shape suppress) {
    std::vector<Tensor> inputs;
    inputs.push_back(Floats(std::move(logits)));
    inputs.push_back(Floats(std::move(suppress)));
    return Run("Choose", inputs, {ElementType::kInt64, ElementType::kFloat32});
  }

  /// Two rows of 256 numbers; 20 outputs unless they are gated.
  std::vector<Tensor> BlockLinear(Shape x, Shape weight, std::uint64_t bits, std::uint64_t width,
                                  std::uint64_t gated = 0) {
    std::vector<Tensor> inputs;
    inputs.push_back(Floats(std::move(x)));
    inputs.emplace_back(runtime_, ElementType::kUint8, std::move(weight));
    return Run("BlockLinear", inputs, {ElementType::kFloat32},
               {{"bits", bits}, {"width", width}, {"gated", gated}});
  }

  std::vector<Tensor> BlockRows(std::int64_t id, Shape weight) {
    std::vector<Tensor> inputs;
    inputs.emplace_back(runtime_, ElementType::kInt64, Shape{1, 1});
    inputs[0].values<std::int64_t>()[0] = id;
    inputs.emplace_back(runtime_, ElementType::kUint8, std::move(weight));
    return Run("BlockRows", inputs, {ElementType::kFloat32}, {{"bits", 8}, {"width", 64}});
  }

  /// Two rows of 4 heads of 16, which share 2 of keys; a table of 5 angles.
  std::vector<Tensor> GroupedAttention(Shape past, const std::vector<std::int32_t>& places,
                                       std::int64_t position, std::uint64_t heads = 4) {
    std::vector<Tensor> inputs;
    inputs.push_back(Floats({1, 2, 96}));
    inputs.push_back(Floats({1, 2, 32}));
    inputs.push_back(Floats(past));
    inputs.push_back(Floats(past));
    inputs.push_back(Lines(places));
    inputs.emplace_back(runtime_, ElementType::kInt64, Shape{2});
    inputs.back().values<std::int64_t>()[1] = position;
    inputs.push_back(Floats({5, 8}));
    inputs.push_back(Floats({5, 8}));
    return Run("GroupedAttention", inputs, std::vector<ElementType>(3, ElementType::kFloat32),
               {{"heads", heads}, {"kv_heads", 2}});
  }

  const std::vector<ElementType> kCross = {ElementType::kUint8, ElementType::kFloat32,
                                           ElementType::kInt8, ElementType::kFloat32};
  const std::shared_ptr<Runtime> runtime_ = TestRuntime();
};

TEST_F(OperatorsTest, TakeWhatFits) {
  EXPECT_EQ(Linear({1, 2, 8}, {2, 2, 16, 4}, {20}, {20})[0].shape(), (Shape{1, 2, 20}));
  EXPECT_EQ(SelfAttention({1, 1, 4, 16}, {0, 0, 0, 0, 0, 1, 0, 0})[0].shape(), (Shape{1, 2, 16}));
  EXPECT_EQ(SelfAttention({2, 1, 4, 16}, {1, 0, 0, 0, 1, 3, 1, 2})[0].shape(), (Shape{1, 2, 16}));
  EXPECT_EQ(CrossAttention(2, {0, 0, 0, 0, 1, 9, 9, 9})[0].shape(), (Shape{1, 2, 16}));
  EXPECT_EQ(Choose({1, 2, 5}, {5})[0].shape(), (Shape{1, 2}));
  EXPECT_EQ(BlockLinear({1, 2, 256}, {2, 1, 2368}, 4, 20)[0].shape(), (Shape{1, 2, 20}));
  EXPECT_EQ(BlockLinear({1, 2, 128}, {4, 2, 1088}, 8, 20, 1)[0].shape(), (Shape{1, 2, 20}));
  EXPECT_EQ(BlockLinear({1, 2, 512}, {1, 2, 3392}, 6, 16)[0].shape(), (Shape{1, 2, 16}));
  EXPECT_EQ(BlockLinear({1, 0, 64}, {1, 1, 1088}, 8, 16)[0].shape(), (Shape{1, 0, 16}));
  EXPECT_EQ(BlockRows(31, {2, 1, 1088})[0].shape(), (Shape{1, 1, 64}));
  EXPECT_EQ(GroupedAttention({1, 2, 4, 16}, {0, 0, 0, 0, 0, 1, 0, 0}, 4)[0].shape(),
            (Shape{1, 2, 64}));
}

TEST_F(OperatorsTest, RefuseWhatDoesNotFit) {
  EXPECT_THROW(Linear({1, 2, 8}, {2, 2, 16, 4}, {20}, {19}), Error) << "a short bias";
  EXPECT_THROW(Linear({1, 2, 8}, {1, 2, 16, 4}, {20}, {20}), Error) << "too few outputs";
  EXPECT_THROW(Linear({1, 2, 0}, {2, 0, 16, 4}, {20}, {20}), Error) << "no inputs";
  EXPECT_THROW(Linear({1, 1, 65540}, {1, 16385, 16, 4}, {1}, {1}), Error)
      << "more inputs than sums of 32 bits hold";
  EXPECT_THROW(Run("Attention", OneTensor({1, 4, 40}), {ElementType::kFloat32}, {{"heads", 1}}),
               Error)
      << "a width that is no three of heads";
  EXPECT_THROW(Run("QuantizeCross", OneTensor({1, 0, 32}), kCross, {{"heads", 1}}), Error)
      << "no positions";
  EXPECT_THROW(BlockLinear({1, 2, 256}, {2, 1, 2368}, 5, 20), Error) << "no such format";
  EXPECT_THROW(BlockLinear({1, 2, 256}, {2, 1, 2368}, 8, 20), Error) << "the other format";
  EXPECT_THROW(BlockLinear({1, 2, 128}, {2, 0, 2368}, 4, 20), Error) << "half a group";
  EXPECT_THROW(BlockLinear({1, 2, 256}, {1, 1, 2368}, 4, 20), Error) << "too few outputs";
  EXPECT_THROW(BlockLinear({1, 2, 256}, {2, 1, 2368}, 4, 20, 1), Error) << "gates alone";
  EXPECT_THROW(BlockRows(32, {2, 1, 1088}), Error) << "no such row";
  EXPECT_THROW(BlockRows(-1, {2, 1, 1088}), Error) << "no such row";
  const std::vector<std::int32_t> places = {0, 0, 0, 0, 0, 1, 0, 0};
  EXPECT_THROW(GroupedAttention({1, 2, 4, 16}, places, 5), Error) << "a position without angles";
  EXPECT_THROW(GroupedAttention({1, 2, 1, 16}, places, 1), Error) << "a full context";
  EXPECT_THROW(GroupedAttention({1, 4, 4, 16}, places, 1), Error) << "caches of other heads";
  EXPECT_THROW(GroupedAttention({1, 2, 4, 16}, places, 1, 5), Error) << "heads that do not divide";
  EXPECT_THROW(SelfAttention({0, 1, 4, 16}, {0, 0, 0, 0, 0, 1, 0, 0}), Error) << "no slots";
  EXPECT_THROW(SelfAttention({1, 1, 1, 16}, {0, 0, 0, 0, 0, 1, 0, 0}), Error) << "a full context";
  EXPECT_THROW(SelfAttention({1, 1, 4, 16}, {0, 0, 0, 0}), Error) << "a row without a place";
  EXPECT_THROW(SelfAttention({1, 1, 4, 16}, {0, 0, 0, 0, 1, 1, 0, 0}), Error) << "no such slot";
  EXPECT_THROW(SelfAttention({1, 1, 4, 16}, {0, 0, 0, 0, -1, 1, 0, 0}), Error) << "negative";
  EXPECT_THROW(SelfAttention({1, 1, 4, 16}, {0, 0, 0, 0, 0, 1, 0, 2}), Error) << "begins after";
  EXPECT_THROW(SelfAttention({1, 1, 4, 16}, {0, 0, 0, 0, 0, 2, 2, 1}), Error) << "seen twice";
  EXPECT_THROW(CrossAttention(1, {0, 0, 0, 0, 1, 1, 0, 0}), Error) << "no such slot";
  EXPECT_THROW(CrossAttention(0, {0, 0, 0, 0, 0, 1, 0, 0}), Error) << "no slots";
  EXPECT_THROW(Choose({}, {1}), Error) << "logits without a row";
  EXPECT_THROW(Choose({1, 2, 0}, {0}), Error) << "nothing to choose from";
}

}  // namespace
}  // namespace as2d
