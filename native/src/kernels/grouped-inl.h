// Rotary positions, and self-attention in which several query heads share keys and values. Part of
// kernels-inl.h.

namespace as2d::kernels {
namespace {

// Dimension i of a head is turned together with dimension i + half of it.
void Rotate(const float* __restrict x, const float* __restrict cosine, const float* __restrict sine,
            std::size_t half, float* __restrict y) {
  for (std::size_t i = 0; i < half; ++i) {
    y[i] = x[i] * cosine[i] - x[half + i] * sine[i];
    y[half + i] = x[half + i] * cosine[i] + x[i] * sine[i];
  }
}

/// A stretch of positions of a slot that a row sees, and where it is in what the row sees.
struct Stretch {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t index = 0;
};

// What of [from, to) the row sees: of its two stretches, first or second.
inline Stretch SeenPart(const Place& place, bool second, std::size_t from, std::size_t to) {
  const std::size_t begin = second ? place.begin : 0;
  const std::size_t end = second ? place.at + 1 : place.shared;
  const std::size_t first = std::max(from, begin);
  const std::size_t last = std::min(to, end);
  if (first >= last) return {};
  return {first, last - first, (second ? place.shared : 0) + first - begin};
}

// So many positions at once, by all rows and heads: their keys or values stay in the nearest cache.
constexpr std::size_t kChunkPositions = 32;

void GroupedAttention(const float* query, std::size_t query_stride, std::size_t heads,
                      const Place* places, std::size_t rows, std::size_t width, std::size_t size,
                      const float* cache_k, const float* cache_v, std::size_t slot_stride,
                      float* y) {
  thread_local std::vector<float> memory;
  const float scale = 1.0F / std::sqrt(static_cast<float>(size));
  std::size_t longest = 0;
  std::size_t end = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    longest = std::max(longest, places[r].shared + places[r].at + 1 - places[r].begin);
    end = std::max(end, places[r].at + 1);
  }
  float* const all = Keep(memory, rows * heads * longest);
  const auto scores_of = [&](std::size_t r, std::size_t head) {
    return all + (r * heads + head) * longest;
  };
  const auto each_part = [&](const auto& work) {
    for (std::size_t from = 0; from < end; from += kChunkPositions) {
      for (std::size_t r = 0; r < rows; ++r) {
        for (const bool second : {false, true}) {
          const Stretch part = SeenPart(places[r], second, from, from + kChunkPositions);
          if (part.count > 0) work(r, part, places[r].slot * slot_stride + part.first * size);
        }
      }
    }
  };
  each_part([&](std::size_t r, const Stretch& part, std::size_t at) {
    for (std::size_t head = 0; head < heads; ++head) {
      ScorePositions(query + r * query_stride + head * size, size, scale, cache_k + at, part.count,
                     scores_of(r, head) + part.index);
    }
  });
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t length = places[r].shared + places[r].at + 1 - places[r].begin;
    for (std::size_t head = 0; head < heads; ++head) {
      float* const scores = scores_of(r, head);
      const float most = Max(scores, length);
      for (std::size_t t = 0; t < length; ++t) scores[t] = Exp(scores[t] - most);
      const float inverse = 1.0F / Sum(scores, length);
      for (std::size_t t = 0; t < length; ++t) scores[t] *= inverse;
      std::fill_n(y + r * width + head * size, size, 0.0F);
    }
  }
  each_part([&](std::size_t r, const Stretch& part, std::size_t at) {
    for (std::size_t head = 0; head < heads; ++head) {
      MixPositions(scores_of(r, head) + part.index, 1.0F, cache_v + at, part.count, size,
                   y + r * width + head * size);
    }
  });
}

}  // namespace
}  // namespace as2d::kernels
