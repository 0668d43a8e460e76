# Build rules shared by every folder: one function for a library module, one for its sources, one for
# a test.  A module is built twice: `gori_<module>`, which is installed and exports only GORI_API
# symbols, and `gori_<module>_testing`, a static build with internals visible, which tests link.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(GORI_WERROR "Treat warnings as errors" ON)
set(GORI_SANITIZE "" CACHE STRING "Sanitizers to build with: address, undefined, thread")

find_package(Threads REQUIRED)

add_library(gori_flags INTERFACE)
target_compile_options(gori_flags INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wimplicit-fallthrough
    -Wundef -Wwrite-strings -Wpointer-arith -Wconversion -fno-strict-aliasing
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
    $<$<BOOL:${GORI_WERROR}>:-Werror>
    $<$<BOOL:${GORI_SANITIZE}>:-fsanitize=${GORI_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
target_link_options(gori_flags INTERFACE
    $<$<BOOL:${GORI_SANITIZE}>:-fsanitize=${GORI_SANITIZE}>)
target_compile_definitions(gori_flags INTERFACE _GNU_SOURCE)
target_include_directories(gori_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)

# gori_module(NAME [DEPENDS MODULE...]): declares the two libraries of a module.
function(gori_module name)
    cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
    foreach(suffix IN ITEMS "" "_testing")
        set(target gori_${name}${suffix})
        if(suffix STREQUAL "")
            add_library(${target})
            set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden EXPORT_NAME ${name})
            add_library(gori::${name} ALIAS ${target})
        else()
            add_library(${target} STATIC)
        endif()
        # A module exists from its declaration on, also before its first source is listed.
        target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include/gori/base.h)
        set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
        target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:gori_flags> PUBLIC Threads::Threads)
        target_include_directories(${target} PUBLIC
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
        foreach(dependency IN LISTS arg_DEPENDS)
            target_link_libraries(${target} PUBLIC gori_${dependency}${suffix})
        endforeach()
    endforeach()
endfunction()

# gori_sources(MODULE FILE...): adds sources of this folder to a module.
function(gori_sources module)
    foreach(file IN LISTS ARGN)
        target_sources(gori_${module} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${file})
        target_sources(gori_${module}_testing PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    endforeach()
endfunction()

# gori_test(NAME MODULE FILE...): one test program, registered with ctest under NAME.
function(gori_test name module)
    add_executable(${name}_test ${ARGN})
    target_link_libraries(${name}_test PRIVATE gori_flags gori_${module}_testing)
    target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()
