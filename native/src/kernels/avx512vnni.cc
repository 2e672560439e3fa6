// Kernels for AVX-512 with VNNI.
#include "kernels.h"

#ifdef __AVX512VNNI__

#include "avx512-inl.h"
#include "kernels-inl.h"

namespace as2d::kernels {

const Kernels* Avx512Vnni() { return &kKernels; }

}  // namespace as2d::kernels

#else

namespace as2d::kernels {

const Kernels* Avx512Vnni() { return nullptr; }

}  // namespace as2d::kernels

#endif
