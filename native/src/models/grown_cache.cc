#include "grown_cache.h"

#include <algorithm>
#include <utility>

#include "as2d/error.h"

namespace as2d {
namespace {

/// "present.0.decoder.key" -> "past_key_values.0.decoder.key".
std::string PastOf(const std::string& present) {
  return "past_key_values" + present.substr(std::min(present.find('.'), present.size()));
}

}  // namespace

GrownCacheNames CachesOf(const Session& decoder) {
  GrownCacheNames names;
  for (const ValueInfo& output : decoder.outputs()) {
    if (output.name == "logits") continue;
    names.present.push_back(output.name);
    names.past.push_back(PastOf(output.name));
    if (decoder.FindInput(names.past.back()) == nullptr) {
      throw Error(decoder.file().string() + ": output '" + output.name +
                  "' has no input that takes it back; this is not a merged decoder");
    }
  }
  return names;
}

Tensor EmptyCache(const Session& decoder, const std::string& past) {
  const ValueInfo& input = *decoder.FindInput(past);
  Shape shape = input.shape;
  if (input.type != ElementType::kFloat32 || shape.size() != 4 || shape[1] < 1 || shape[3] < 1) {
    throw Error(decoder.file().string() + ": input '" + past + "' is " +
                std::string(ElementName(input.type)) + ' ' + ShapeText(shape) +
                ", not a cache of float32 with so many heads of a size; choose another export");
  }
  shape[0] = 1;
  shape[2] = 0;
  return {decoder.runtime(), ElementType::kFloat32, std::move(shape)};
}

}  // namespace as2d
