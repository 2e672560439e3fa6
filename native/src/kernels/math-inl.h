// Scalar functions that the compiler vectorises, and sums over rows. Part of kernels-inl.h.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace as2d::kernels {
namespace {

// Sixteen floats in as many registers as they take.
class Sixteen {
 public:
  [[gnu::always_inline]] static Sixteen At(const float* x) {
    Sixteen loaded;
    Each<kParts>([&](auto i) __attribute__((always_inline)) {
      loaded.of_[i] = *reinterpret_cast<const Register*>(x + i * kFloats);
    });
    return loaded;
  }
  [[gnu::always_inline]] static Sixteen OfIntegers(const std::int32_t* x) {
    typedef std::int32_t Integers __attribute__((vector_size(4 * kFloats), aligned(4)));
    Sixteen made;
    Each<kParts>([&](auto i) __attribute__((always_inline)) {
      const Integers part = *reinterpret_cast<const Integers*>(x + i * kFloats);
      made.of_[i] = __builtin_convertvector(part, Register);
    });
    return made;
  }
  [[gnu::always_inline]] static Sixteen OfBytes(const std::uint8_t* x) {
    std::int32_t wide[16];
    for (std::size_t i = 0; i < 16; ++i) wide[i] = x[i];
    return OfIntegers(wide);
  }
  [[gnu::always_inline]] static Sixteen OfSignedBytes(const std::uint8_t* x) {
    std::int32_t wide[16];
    for (std::size_t i = 0; i < 16; ++i) wide[i] = static_cast<std::int8_t>(x[i]);
    return OfIntegers(wide);
  }
  /// Of 16-bit floating-point numbers.
  [[gnu::always_inline]] static Sixteen OfHalves(const std::uint16_t* x) {
    alignas(64) float wide[16];
#if defined(__AVX512F__)
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
    // The mask says "all"; without one, some compilers complain of what their own header does.
    _mm512_store_ps(wide, _mm512_maskz_cvtph_ps(0xffff, halves));
#elif defined(__F16C__)
    for (std::size_t i = 0; i < 16; i += 8) {
      const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
      _mm256_store_ps(wide + i, _mm256_cvtph_ps(eight));
    }
#elif defined(__aarch64__)
    for (std::size_t i = 0; i < 16; ++i) {
      __fp16 half;
      std::memcpy(&half, x + i, sizeof half);
      wide[i] = half;
    }
#else
    for (std::size_t i = 0; i < 16; ++i) wide[i] = FloatOfHalf(x[i]);
#endif
    return At(wide);
  }
  [[gnu::always_inline]] Sixteen operator*(float a) const {
    Sixteen made;
    Each<kParts>([&](auto i) __attribute__((always_inline)) { made.of_[i] = of_[i] * a; });
    return made;
  }
  [[gnu::always_inline]] Sixteen operator*(const Sixteen& a) const {
    Sixteen made;
    Each<kParts>([&](auto i) __attribute__((always_inline)) { made.of_[i] = of_[i] * a.of_[i]; });
    return made;
  }
  [[gnu::always_inline]] void Store(float* x) const {
    Each<kParts>([&](auto i) __attribute__((always_inline)) {
      *reinterpret_cast<Register*>(x + i * kFloats) = of_[i];
    });
  }
  [[gnu::always_inline]] void Add(float a, const Sixteen& b) {
    Each<kParts>([&](auto i) __attribute__((always_inline)) { of_[i] += a * b.of_[i]; });
  }
  [[gnu::always_inline]] void Add(const Sixteen& a, const Sixteen& b) {
    Each<kParts>([&](auto i) __attribute__((always_inline)) { of_[i] += a.of_[i] * b.of_[i]; });
  }
  /// The sum of all, by halves.
  [[gnu::always_inline]] float Total() const {
    const Four four = Quarters();
    return (four[0] + four[2]) + (four[1] + four[3]);
  }

 private:
#if defined(__AVX512F__)
  static constexpr std::size_t kFloats = 16;
#elif defined(__AVX2__)
  static constexpr std::size_t kFloats = 8;
#else
  static constexpr std::size_t kFloats = 4;
#endif
  static constexpr std::size_t kParts = 16 / kFloats;
  // Wherever it lies in memory.
  typedef float Register __attribute__((vector_size(4 * kFloats), aligned(4)));

  typedef float Four __attribute__((vector_size(16)));

  [[gnu::always_inline]] Four Quarters() const {
#if defined(__AVX2__)
    typedef float Eight __attribute__((vector_size(32)));
#if defined(__AVX512F__)
    const Eight half = __builtin_shufflevector(of_[0], of_[0], 0, 1, 2, 3, 4, 5, 6, 7) +
                       __builtin_shufflevector(of_[0], of_[0], 8, 9, 10, 11, 12, 13, 14, 15);
#else
    const Eight half = of_[0] + of_[1];
#endif
    return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
           __builtin_shufflevector(half, half, 4, 5, 6, 7);
#else
    return (of_[0] + of_[2]) + (of_[1] + of_[3]);
#endif
  }

  Register of_[kParts] = {};
};

// Rounds to nearest even without a call, for |x| < 2^22; the compiler vectorises it. Anything else,
// not a number included, gives some number.
inline std::int32_t Round(float x) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: the sum's last bits are the integer
  return static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x + kMagic) - 0x4b400000U);
}

// e^x for x <= 0, to about 2e-7 of its value; what is below e^-60 becomes that, so that nothing
// made of it is a denormal number, which some processors take a hundred times as long for. e^x =
// 2^n * e^r with |r| <= ln(2)/2, and Taylor's series of e^r up to r^7.
inline float Exp(float x) {
  x = std::max(x, -60.0F);
  const std::int32_t n = Round(x * 1.44269504F);
  const auto scale = static_cast<float>(n);
  // ln(2) in two parts, so that r keeps its bits.
  const float r = (x - scale * 0.693145752F) - scale * 1.42860677e-6F;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * std::bit_cast<float>((n + 127) << 23);
}

// 2^x on [-1/2, 1/2], to 5e-6 of its value; 1 at 0.
constexpr float kExp2[] = {1.0F, 0.693124175F, 0.240240991F, 0.0559064262F, 0.00958285294F};

// 2^x for x <= 0, to 5e-6 of its value; what is below 2^-100 becomes that.
inline float Exp2(float x) {
  x = std::max(x, -100.0F);
  const std::int32_t n = Round(x);
  const float r = x - static_cast<float>(n);
  float p = kExp2[4];
  for (int i = 3; i >= 0; --i) p = p * r + kExp2[i];
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(p) + (n << 23));
}

// The natural logarithm of a normal x > 0, to about 1e-7.
// x = 2^n * m with m in [sqrt(1/2), sqrt(2)), and the series of log(m) in (m - 1) / (m + 1).
inline float Log(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t shifted = bits - 0x3f3504f3U;  // sqrt(1/2)
  const std::int32_t n = static_cast<std::int32_t>(shifted) >> 23;
  const float m = std::bit_cast<float>((shifted & 0x7fffffU) + 0x3f3504f3U);
  const float z = (m - 1.0F) / (m + 1.0F);
  const float w = z * z;
  float p = 2.0F / 9.0F;
  p = p * w + 2.0F / 7.0F;
  p = p * w + 2.0F / 5.0F;
  p = p * w + 2.0F / 3.0F;
  p = p * w + 2.0F;
  return p * z + static_cast<float>(n) * 0.693147181F;
}

// x times the share of the normal distribution below x, with the error function of Abramowitz and
// Stegun, Handbook of Mathematical Functions, 7.1.26, which is right to 1.5e-7.
inline float Gelu(float x) {
  const float z = std::fabs(x) * 0.707106781F;
  const float t = 1.0F / (1.0F + 0.3275911F * z);
  float p = 1.061405429F;
  p = p * t - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  const float beyond = p * t * Exp(-z * z);  // 1 - erf(z)
  return std::max(x, 0.0F) - 0.5F * std::fabs(x) * beyond;
}

// Sixteen partial results, which the compiler keeps in vector registers, and then one.
struct Partial {
  float values[16];
  float Sum() const {
    float sums[8];
    for (int i = 0; i < 8; ++i) sums[i] = values[i] + values[i + 8];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  }
  float Max() const { return *std::max_element(values, values + 16); }
};

inline float MaxAbs(const float* x, std::size_t n) {
  Partial most{};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) {
      most.values[j] = std::max(most.values[j], std::fabs(x[i + j]));
    }
  }
  float result = most.Max();
  for (; i < n; ++i) result = std::max(result, std::fabs(x[i]));
  return result;
}

inline float Max(const float* x, std::size_t n) {
  Partial most;
  std::fill_n(most.values, 16, -std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) most.values[j] = std::max(most.values[j], x[i + j]);
  }
  float result = most.Max();
  for (; i < n; ++i) result = std::max(result, x[i]);
  return result;
}

inline float Sum(const float* x, std::size_t n) {
  Partial sum{};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) sum.values[j] += x[i + j];
  }
  float result = sum.Sum();
  for (; i < n; ++i) result += x[i];
  return result;
}

// Memory that a thread keeps from call to call, so that steps do not allocate.
template <typename T>
T* Keep(std::vector<T>& memory, std::size_t size) {
  if (memory.size() < size) memory.resize(size);
  return memory.data();
}

}  // namespace
}  // namespace as2d::kernels
