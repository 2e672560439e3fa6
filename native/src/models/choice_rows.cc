#include "as2d/models/choice_rows.h"

#include <algorithm>

namespace as2d {
namespace {

constexpr auto kColumns = static_cast<std::int64_t>(kChoiceColumns);

}  // namespace

std::array<std::int32_t, kChoiceColumns> ChoiceLineOf(const Row& row) {
  const Choice& choice = row.choice;
  // Odd, so that no two positions have one seed.
  const std::uint32_t seed = choice.seed + 0x9E3779B1U * static_cast<std::uint32_t>(row.position);
  return {choice.first, choice.timestamps, choice.low,
          choice.high,  choice.score,      static_cast<std::int32_t>(seed)};
}

ChoiceRows::ChoiceRows(const std::shared_ptr<const Runtime>& runtime, std::int64_t rows)
    : choices_(runtime, ElementType::kInt32, {rows, kColumns}),
      temperatures_(runtime, ElementType::kFloat32, {rows}) {}

void ChoiceRows::Set(std::size_t index, const Row& row) {
  const auto line = ChoiceLineOf(row);
  std::ranges::copy(line, choices_.values<std::int32_t>().begin() +
                              static_cast<std::ptrdiff_t>(line.size() * index));
  temperatures_.values<float>()[index] = row.choice.temperature;
}

void ChoiceRows::BindTo(Binding* binding, std::int64_t rows) const {
  binding->BindInput("choices", choices_.View({rows, kColumns}));
  binding->BindInput("temperatures", temperatures_.View({rows}));
}

}  // namespace as2d
