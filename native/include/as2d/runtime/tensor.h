#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "as2d/error.h"
#include "as2d/runtime/ort.h"

namespace as2d {

/// Element types that the engine moves; the values are ONNX's own.
enum class ElementType : int {
  kUnknown = 0,  ///< Any type that is not below.
  kFloat32 = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 9,
};

/// Bytes of one element; 0 for kUnknown.
std::size_t ElementBytes(ElementType type);
/// "float32", "int64", ...
std::string_view ElementName(ElementType type);
/// "[1,8,448,64]"; a dimension that the graph leaves open (-1) is written "?".
std::string ShapeText(std::span<const std::int64_t> shape);

using Shape = std::vector<std::int64_t>;

template <typename T>
inline constexpr ElementType kElementTypeOf = ElementType::kUnknown;
template <>
inline constexpr ElementType kElementTypeOf<float> = ElementType::kFloat32;
template <>
inline constexpr ElementType kElementTypeOf<std::uint8_t> = ElementType::kUint8;
template <>
inline constexpr ElementType kElementTypeOf<std::int8_t> = ElementType::kInt8;
template <>
inline constexpr ElementType kElementTypeOf<std::int32_t> = ElementType::kInt32;
template <>
inline constexpr ElementType kElementTypeOf<std::int64_t> = ElementType::kInt64;
template <>
inline constexpr ElementType kElementTypeOf<bool> = ElementType::kBool;

/// A dense row-major tensor in plain memory, which the inference runtime reads and writes in place.
///
/// Movable, not copyable; View makes another handle on the same memory, and the memory lives as
/// long as any handle. Not synchronised: one thread at a time may write.
class Tensor {
 public:
  /// No tensor: data() is null, the shape is empty.
  Tensor() = default;
  /// Zero-filled memory aligned to 64 bytes (a cache line, and the widest vector register). Throws
  /// Error for kUnknown or a negative dimension. A dimension of 0 is allowed.
  Tensor(std::shared_ptr<const Runtime> runtime, ElementType type, Shape shape);
  /// Takes over a value that the inference runtime has made; its memory goes with the last handle.
  static Tensor Adopt(std::shared_ptr<const Runtime> runtime, OrtValue* value);

  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  /// Elements of this memory from `first` on in another shape: the rows 0..n-1 of a buffer made for
  /// more. Throws Error if that is more than this tensor has.
  Tensor View(Shape shape, std::size_t first = 0) const;

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  /// Number of elements.
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * ElementBytes(type_); }
  bool empty() const { return value_ == nullptr; }
  void* data() const { return data_; }

  /// The elements. Throws Error if T is not the element type.
  template <typename T>
  std::span<T> values() const {
    if (kElementTypeOf<T> != type_) throw Error(WrongType(kElementTypeOf<T>));
    return {static_cast<T*>(data_), size_};
  }

  OrtValue* value() const { return value_.get(); }

 private:
  std::string WrongType(ElementType asked) const;
  void Wrap();

  std::shared_ptr<const Runtime> runtime_;
  std::shared_ptr<void> memory_;     // Null for an adopted value, which owns its memory.
  std::shared_ptr<OrtValue> value_;  // A view of an adopted value holds the latter in memory_.
  ElementType type_ = ElementType::kUnknown;
  Shape shape_;
  std::size_t size_ = 0;
  void* data_ = nullptr;
};

}  // namespace as2d
