# Linux with the C library musl, by Debian's musl-gcc.  It brings no headers of the kernel: those of
# the system are lent to it, and nothing else of /usr/include.
set(CMAKE_C_COMPILER musl-gcc)
set(kernel_headers ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel_headers})
foreach(name IN ITEMS linux asm-generic)
    file(CREATE_LINK /usr/include/${name} ${kernel_headers}/${name} SYMBOLIC)
endforeach()
file(CREATE_LINK /usr/include/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/asm ${kernel_headers}/asm
    SYMBOLIC)
# Its FD_SET and its msghdr count in types of the other sign.
set(CMAKE_C_FLAGS_INIT "-isystem ${kernel_headers} -Wno-sign-conversion")
