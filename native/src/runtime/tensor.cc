#include "as2d/runtime/tensor.h"

#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <utility>

namespace as2d {
namespace {

namespace entry = ort::entry;

constexpr std::size_t kAlignment = 64;

// Large memory comes zeroed from the system, which gives each page only when it is written to: of a
// long context what is not used takes none.
std::shared_ptr<void> ZeroedMemory(std::size_t bytes) {
  std::size_t reserved = bytes + kAlignment;
  void* const memory = std::calloc(1, reserved);
  if (memory == nullptr) throw std::bad_alloc();
  void* aligned = memory;
  std::align(kAlignment, bytes, aligned, reserved);
  return {aligned, [memory](void*) { std::free(memory); }};
}

// Number of elements. Throws Error for a negative dimension or a product beyond the address space.
std::size_t CountElements(const Shape& shape, ElementType type) {
  std::size_t count = 1;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) throw Error("tensor " + ShapeText(shape) + ": a dimension is negative");
    const auto factor = static_cast<std::size_t>(dimension);
    const std::size_t limit = std::numeric_limits<std::ptrdiff_t>::max() / ElementBytes(type);
    if (factor != 0 && count > limit / factor) {
      throw Error("tensor " + ShapeText(shape) + ": too large");
    }
    count *= factor;
  }
  return count;
}

ElementType KnownType(int type) {
  switch (const auto known = static_cast<ElementType>(type)) {
    case ElementType::kFloat32:
    case ElementType::kUint8:
    case ElementType::kInt8:
    case ElementType::kInt32:
    case ElementType::kInt64:
    case ElementType::kBool:
      return known;
    case ElementType::kUnknown:
      break;
  }
  return ElementType::kUnknown;
}

}  // namespace

std::size_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kInt64:
      return 8;
    case ElementType::kUint8:
    case ElementType::kInt8:
    case ElementType::kBool:
      return 1;
    case ElementType::kUnknown:
      break;
  }
  return 0;
}

std::string_view ElementName(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kBool:
      return "bool";
    case ElementType::kUnknown:
      break;
  }
  return "unknown";
}

std::string ShapeText(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t dimension : shape) {
    if (text.size() > 1) text += ',';
    text += dimension == -1 ? "?" : std::to_string(dimension);
  }
  return text + ']';
}

Tensor::Tensor(std::shared_ptr<const Runtime> runtime, ElementType type, Shape shape)
    : runtime_(std::move(runtime)), type_(type), shape_(std::move(shape)) {
  if (ElementBytes(type) == 0) throw Error("tensor " + ShapeText(shape_) + ": unknown type");
  size_ = CountElements(shape_, type_);
  memory_ = ZeroedMemory(bytes());
  data_ = memory_.get();
  Wrap();
}

Tensor Tensor::Adopt(std::shared_ptr<const Runtime> runtime, OrtValue* value) {
  Tensor tensor;
  tensor.runtime_ = std::move(runtime);
  const Runtime& ort = *tensor.runtime_;
  tensor.value_ = std::shared_ptr<OrtValue>(value, [kept = tensor.runtime_](OrtValue* owned) {
    kept->api().Call<entry::ReleaseValue>(owned);
  });

  OrtTensorTypeAndShapeInfo* raw = nullptr;
  ort.Check(ort.api().Call<entry::GetTensorTypeAndShape>(value, &raw), "output");
  const std::shared_ptr<OrtTensorTypeAndShapeInfo> info(
      raw, [&ort](auto* owned) { ort.api().Call<entry::ReleaseTensorTypeAndShapeInfo>(owned); });
  int type = 0;
  std::size_t rank = 0;
  ort.Check(ort.api().Call<entry::GetTensorElementType>(raw, &type), "output");
  ort.Check(ort.api().Call<entry::GetDimensionsCount>(raw, &rank), "output");
  tensor.type_ = KnownType(type);
  tensor.shape_.resize(rank);
  ort.Check(ort.api().Call<entry::GetDimensions>(raw, tensor.shape_.data(), rank), "output");
  if (tensor.type_ == ElementType::kUnknown) {
    throw Error("output " + ShapeText(tensor.shape_) + ": element type " + std::to_string(type) +
                " of ONNX is not supported");
  }
  tensor.size_ = CountElements(tensor.shape_, tensor.type_);
  ort.Check(ort.api().Call<entry::GetTensorMutableData>(value, &tensor.data_), "output");
  return tensor;
}

Tensor Tensor::View(Shape shape, std::size_t first) const {
  if (empty()) throw Error("tensor: a view of nothing");
  Tensor view;
  view.size_ = CountElements(shape, type_);
  if (first > size_ || view.size_ > size_ - first) {
    throw Error("tensor " + ShapeText(shape_) + ": too small for a view of " + ShapeText(shape));
  }
  view.runtime_ = runtime_;
  view.memory_ = memory_ ? memory_ : std::shared_ptr<void>(value_);
  view.type_ = type_;
  view.shape_ = std::move(shape);
  view.data_ = static_cast<char*>(data_) + first * ElementBytes(type_);
  view.Wrap();
  return view;
}

std::string Tensor::WrongType(ElementType asked) const {
  return "tensor " + ShapeText(shape_) + ": holds " + std::string(ElementName(type_)) + ", not " +
         std::string(ElementName(asked));
}

void Tensor::Wrap() {
  // The runtime wants an address for a tensor without elements as well.
  OrtValue* value = nullptr;
  runtime_->Check(runtime_->api().Call<entry::CreateTensorWithDataAsOrtValue>(
                      runtime_->cpu_memory(), data_, bytes(), shape_.data(), shape_.size(),
                      static_cast<int>(type_), &value),
                  "tensor " + ShapeText(shape_));
  value_ = std::shared_ptr<OrtValue>(
      value, [kept = runtime_](OrtValue* owned) { kept->api().Call<entry::ReleaseValue>(owned); });
}

}  // namespace as2d
