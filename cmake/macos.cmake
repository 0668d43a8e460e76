# macOS by the Zig compiler, which carries Apple's headers and stubs of its libraries (./dev fetches
# it).  GORI_MACOS_CPU is x86_64 or aarch64.  What comes out cannot be run here.
set(GORI_MACOS_CPU x86_64 CACHE STRING "The processor: x86_64 or aarch64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES GORI_MACOS_CPU)
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR ${GORI_MACOS_CPU})
set(CMAKE_C_COMPILER ${CMAKE_CURRENT_LIST_DIR}/../tools/macos/cc)
set(CMAKE_C_COMPILER_TARGET ${GORI_MACOS_CPU}-macos.11.0)
set(CMAKE_AR ${CMAKE_CURRENT_LIST_DIR}/../tools/macos/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${CMAKE_CURRENT_LIST_DIR}/../tools/macos/ranlib CACHE FILEPATH "")
set(CMAKE_C_FLAGS_INIT -Wno-overriding-t-option)
