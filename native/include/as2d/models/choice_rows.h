// What a decoder of this project is told of its rows' choices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "as2d/decode/models.h"
#include "as2d/kernels/choose.h"
#include "as2d/runtime/session.h"

namespace as2d {

/// What the operator Choose is to choose after `row`: its line of `choices`.
std::array<std::int32_t, kChoiceColumns> ChoiceLineOf(const Row& row);

/// The inputs `choices` and `temperatures` of a graph that ends with the operator Choose.
class ChoiceRows {
 public:
  ChoiceRows() = default;

  /// Room for so many rows.
  ChoiceRows(const std::shared_ptr<const Runtime>& runtime, std::int64_t rows);

  /// What the operator is to choose after `row`: its line `index` < rows.
  void Set(std::size_t index, const Row& row);

  /// Gives the first `rows` lines to a graph.
  void BindTo(Binding* binding, std::int64_t rows) const;

 private:
  Tensor choices_, temperatures_;
};

}  // namespace as2d
