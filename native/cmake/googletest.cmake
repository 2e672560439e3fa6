# GTest::gtest_main: the system's; when compiling for another processor, from the sources that
# Debian's package googletest brings.
if(NOT CMAKE_CROSSCOMPILING)
  find_package(GTest REQUIRED)
  return()
endif()
set(AS2D_GTEST_SOURCES /usr/src/googletest CACHE PATH "GoogleTest's sources, for cross-compiling")
if(NOT EXISTS ${AS2D_GTEST_SOURCES}/CMakeLists.txt)
  message(FATAL_ERROR "AS2D_TESTS needs GoogleTest's sources to cross-compile: apt-get install "
                      "googletest, or -DAS2D_GTEST_SOURCES=<folder>")
endif()
set(BUILD_GMOCK OFF CACHE INTERNAL "")
set(INSTALL_GTEST OFF CACHE INTERNAL "")
add_subdirectory(${AS2D_GTEST_SOURCES} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
if(NOT TARGET GTest::gtest_main)
  add_library(GTest::gtest_main ALIAS gtest_main)
endif()
