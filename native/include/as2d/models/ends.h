// The tokens that end what a language model says.
#pragma once

#include <vector>

#include "as2d/models/bundle.h"
#include "as2d/text/vocabulary.h"

namespace as2d {

/// Those of a bundle's `ends`, or its one `token.end`. Never empty.
class Ends {
 public:
  explicit Ends(const Bundle& bundle);

  /// Stands for all of them.
  TokenId token() const { return tokens_.front(); }
  /// `token`, or that one where it is one of them.
  TokenId Of(TokenId token) const;

 private:
  std::vector<TokenId> tokens_;
};

}  // namespace as2d
