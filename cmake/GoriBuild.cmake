# Build rules shared by every folder: one function each for a module, its sources, a test, a fuzz
# target, a program and an example.
#
# Every module has two targets: `gori_<module>`, which is installed and exports only GORI_API
# symbols, and `gori_<module>_testing`, which tests link and which shows internals.  In a static
# build they are the same library (an archive hides nothing), so that nothing is compiled twice.

include(GNUInstallDirs)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(BUILD_SHARED_LIBS "Build shared libraries" OFF)
option(GORI_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
option(GORI_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(GORI_HOUSE_TESTS "Test the tools, the headers and the README too" ${PROJECT_IS_TOP_LEVEL})
option(GORI_INSTALL_TESTS "Test the installed package too (./dev test turns it on)" OFF)
option(GORI_BROWSER_TESTS "Test in a browser too (./dev test turns it on)" OFF)
option(GORI_FUZZ "Build fuzz targets with libFuzzer (needs clang)" OFF)
set(GORI_SANITIZE "" CACHE STRING "Sanitizers to build with: address, undefined, thread")

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Flags for everybody: warnings and sanitizers.  Out parameters are untouched on failure, and that an
# error is negative gcc cannot see through a function of another file: its guess about what may be
# uninitialised is wrong for every such call, and differs from version to version.
add_library(gori_warnings INTERFACE)
target_compile_options(gori_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wimplicit-fallthrough
    -Wundef -Wwrite-strings -Wpointer-arith -Wconversion -fno-strict-aliasing
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
    $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    $<$<BOOL:${GORI_WERROR}>:-Werror>
    $<$<BOOL:${GORI_FUZZ}>:-fsanitize=fuzzer-no-link>)
if(GORI_SANITIZE)
    # No generator expression: a comma in the list would end its argument.
    target_compile_options(gori_warnings INTERFACE
        -fsanitize=${GORI_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(gori_warnings INTERFACE -fsanitize=${GORI_SANITIZE})
endif()
target_compile_definitions(gori_warnings INTERFACE _GNU_SOURCE)
if(WIN32)
    # Windows 8 or later, and printf as C has it.
    target_compile_definitions(gori_warnings INTERFACE
        _WIN32_WINNT=0x0602 WIN32_LEAN_AND_MEAN NOMINMAX __USE_MINGW_ANSI_STDIO=1)
endif()

# Flags for code inside the library: it may also include src/.
add_library(gori_flags INTERFACE)
target_link_libraries(gori_flags INTERFACE gori_warnings)
target_include_directories(gori_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)

# A shared library shows nothing but its API, so every module gets its own, hidden copy of src/base.
# That is harmless because base has no variables.  In a static build there is only one.
if(BUILD_SHARED_LIBS)
    add_library(gori_base STATIC EXCLUDE_FROM_ALL)
    set_target_properties(gori_base PROPERTIES
        POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
endif()

function(gori_library_target target)
    # A module exists from its declaration on, also before its first source is listed.
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include/gori/base.h)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:gori_flags> PUBLIC Threads::Threads)
    target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
endfunction()

if(TARGET gori_base)
    gori_library_target(gori_base)
endif()

# gori_module(NAME [DEPENDS MODULE...]): declares the libraries of a module.
function(gori_module name)
    cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
    add_library(gori_${name})
    add_library(gori::${name} ALIAS gori_${name})
    gori_library_target(gori_${name})
    set_target_properties(gori_${name} PROPERTIES
        C_VISIBILITY_PRESET hidden
        EXPORT_NAME ${name}
        OUTPUT_NAME gori-${name}
        VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
        INSTALL_RPATH "$ORIGIN")
    if(BUILD_SHARED_LIBS)
        if(NOT GORI_SANITIZE)
            target_link_options(gori_${name} PRIVATE LINKER:--no-undefined)
        endif()
        add_library(gori_${name}_testing STATIC EXCLUDE_FROM_ALL)
        gori_library_target(gori_${name}_testing)
    else()
        add_library(gori_${name}_testing INTERFACE)
        target_link_libraries(gori_${name}_testing INTERFACE gori_${name})
    endif()
    foreach(dependency IN LISTS arg_DEPENDS)
        target_link_libraries(gori_${name} PUBLIC gori_${dependency})
        if(BUILD_SHARED_LIBS)
            target_link_libraries(gori_${name}_testing PUBLIC gori_${dependency}_testing)
        endif()
    endforeach()
    if(BUILD_SHARED_LIBS AND arg_DEPENDS)
        target_link_libraries(gori_${name} PRIVATE gori_base)
        target_link_options(gori_${name} PRIVATE LINKER:--exclude-libs,libgori_base.a)
    endif()
    set_property(GLOBAL APPEND PROPERTY GORI_MODULES ${name})
    set_property(GLOBAL PROPERTY GORI_DEPENDS_${name} ${arg_DEPENDS})
endfunction()

# gori_sources(MODULE FILE...): adds sources of this folder to a module.
function(gori_sources module)
    list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
    target_sources(gori_${module} PRIVATE ${files})
    if(TARGET gori_base AND CMAKE_CURRENT_SOURCE_DIR STREQUAL "${PROJECT_SOURCE_DIR}/src/base")
        target_sources(gori_base PRIVATE ${files})
    endif()
    if(BUILD_SHARED_LIBS)
        target_sources(gori_${module}_testing PRIVATE ${files})
    endif()
endfunction()

# gori_system_libraries(MODULE LIBRARY...): what the system's own calls of a module are in.
function(gori_system_libraries module)
    target_link_libraries(gori_${module} PUBLIC ${ARGN})
    if(BUILD_SHARED_LIBS)
        target_link_libraries(gori_${module}_testing PUBLIC ${ARGN})
    endif()
endfunction()

# gori_test_library(TARGET): what <lib/test.h> needs.
function(gori_test_library target)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    if(WIN32)
        target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/lib/process_windows.c)
    endif()
endfunction()

# gori_test(NAME MODULE FILE...): one test program, registered with ctest under NAME.
function(gori_test name module)
    if(NOT GORI_TESTS)
        return()
    endif()
    add_executable(${name}_test ${ARGN})
    target_link_libraries(${name}_test PRIVATE gori_flags gori_${module}_testing)
    gori_test_library(${name}_test)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()

# gori_python_test(NAME SCRIPT [ARGUMENT...]): a test written in Python, run by ctest from the root.
function(gori_python_test name script)
    find_program(GORI_PYTHON NAMES python3 REQUIRED)
    add_test(NAME ${name}
        COMMAND ${GORI_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN}
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES
        TIMEOUT 600 ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
endfunction()

# gori_fuzz(NAME MODULE FILE...): one fuzz target, a file with LLVMFuzzerTestOneInput.  With
# GORI_FUZZ it is a libFuzzer program; otherwise a plain one that replays what it is given.  Either
# way ctest replays tests/fuzz/corpus/NAME with it, under the name fuzz_NAME.
function(gori_fuzz name module)
    if(NOT GORI_TESTS)
        return()
    endif()
    add_executable(${name}_fuzz ${ARGN})
    if(GORI_FUZZ)
        target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
        set(replay -runs=0)
    else()
        target_sources(${name}_fuzz PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c)
    endif()
    target_link_libraries(${name}_fuzz PRIVATE gori_flags gori_${module}_testing)
    target_include_directories(${name}_fuzz PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    add_test(NAME fuzz_${name}
        COMMAND ${name}_fuzz ${replay} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT 300 LABELS fuzz)
endfunction()

# gori_program(NAME FILE... MODULES MODULE...): a program, built at the top of the build folder and
# installed.  It sees public headers only.
function(gori_program name)
    cmake_parse_arguments(arg "" "" "MODULES" ${ARGN})
    add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE gori_warnings)
    foreach(module IN LISTS arg_MODULES)
        target_link_libraries(${name} PRIVATE gori_${module})
    endforeach()
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
        INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# gori_example(NAME MODULE): examples/NAME.c, one file against public headers.
function(gori_example name module)
    add_executable(${name}_example ${name}.c)
    target_link_libraries(${name}_example PRIVATE gori_warnings gori_${module})
    set_property(GLOBAL APPEND PROPERTY GORI_EXAMPLES ${name})
endfunction()
