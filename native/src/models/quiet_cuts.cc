#include "as2d/models/quiet_cuts.h"

namespace as2d {

std::vector<std::size_t> QuietCuts(std::span<const float> samples, std::size_t longest) {
  constexpr std::size_t kFrame = 16000 / 50;
  std::vector<std::size_t> ends;
  std::size_t begin = 0;
  while (samples.size() - begin > longest) {
    std::size_t quietest = begin + longest;
    double least = -1;
    for (std::size_t at = begin + longest * 2 / 3; at + kFrame <= begin + longest; at += kFrame) {
      double energy = 0;
      for (const float sample : samples.subspan(at, kFrame)) energy += sample * sample;
      if (least < 0 || energy <= least) {
        least = energy;
        quietest = at + kFrame / 2;
      }
    }
    ends.push_back(quietest);
    begin = quietest;
  }
  ends.push_back(samples.size());
  return ends;
}

}  // namespace as2d
