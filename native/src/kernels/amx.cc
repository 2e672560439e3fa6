// Kernels for AMX with 8-bit integers; all but the products is that of AVX-512.
#include "kernels.h"

#ifdef __AMX_INT8__

#define AS2D_KERNELS_TILES

#include "avx512-inl.h"
#include "kernels-inl.h"

namespace as2d::kernels {

const Kernels* Amx() { return &kKernels; }

}  // namespace as2d::kernels

#else

namespace as2d::kernels {

const Kernels* Amx() { return nullptr; }

}  // namespace as2d::kernels

#endif
