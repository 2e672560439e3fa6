#include "as2d/models/ends.h"

#include <algorithm>

namespace as2d {

Ends::Ends(const Bundle& bundle) : tokens_(bundle.Tokens("ends")) {
  if (tokens_.empty()) tokens_.push_back(bundle.RequiredToken("end"));
}

TokenId Ends::Of(TokenId chosen) const {
  return std::ranges::find(tokens_, chosen) == tokens_.end() ? chosen : token();
}

}  // namespace as2d
