#pragma once

#include <cstdlib>  // Defines __GLIBC__ where the library is glibc.

#if defined(__GLIBC__)
#include <pthread.h>

#include <cstddef>
#include <stdexcept>

namespace as2d {

/// While it lives, no thread can be created in this process: each would get a stack larger than the
/// address space. The one way to fail that needs no limits of the system.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t huge;
    if (pthread_getattr_default_np(&before_) != 0 || pthread_attr_init(&huge) != 0 ||
        pthread_attr_setstacksize(&huge, std::size_t{1} << 60) != 0 ||
        pthread_setattr_default_np(&huge) != 0) {
      throw std::runtime_error("cannot set the default stack size");
    }
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace as2d

#endif
