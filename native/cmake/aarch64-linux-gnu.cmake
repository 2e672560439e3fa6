# AArch64 Linux from another machine, with Debian's cross compiler (g++-aarch64-linux-gnu); what is
# built runs under the user-mode emulator (qemu-user or qemu-user-static).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

find_program(AS2D_EMULATOR NAMES qemu-aarch64 qemu-aarch64-static)
if(AS2D_EMULATOR)
  # The emulator's newest processor would sign and check every address, which takes many times as
  # long; this one has the dot products.
  set(CMAKE_CROSSCOMPILING_EMULATOR ${AS2D_EMULATOR};-cpu;cortex-a76;-L;/usr/aarch64-linux-gnu)
endif()
