# What `cmake --install` puts where: libraries, headers, the CMake package, pkg-config files and
# manual pages.  Nothing written here holds an absolute path, so that a package can be moved.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gori)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

get_property(modules GLOBAL PROPERTY GORI_MODULES)
foreach(module IN LISTS modules)
    install(TARGETS gori_${module} EXPORT gori-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

    # The prefix of a .pc file is found from the place of the file itself.
    file(RELATIVE_PATH pc_prefix /gori/${pkgconfig_dir} /gori)
    string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
    get_property(depends GLOBAL PROPERTY GORI_DEPENDS_${module})
    list(TRANSFORM depends PREPEND "gori-")
    list(JOIN depends " " pc_requires)
    set(pc_module ${module})
    configure_file(${CMAKE_CURRENT_LIST_DIR}/gori.pc.in
        ${PROJECT_BINARY_DIR}/gori-${module}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/gori-${module}.pc DESTINATION ${pkgconfig_dir})
endforeach()

install(EXPORT gori-targets NAMESPACE gori:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/gori-config.cmake.in
    ${PROJECT_BINARY_DIR}/gori-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gori-config-version.cmake
    VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/gori-config.cmake ${PROJECT_BINARY_DIR}/gori-config-version.cmake
    DESTINATION ${package_dir})

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gori
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
set(sections "")
if(EXISTS ${PROJECT_SOURCE_DIR}/docs/man)
    set(sections 1 3 5 7 8)
endif()
foreach(section IN LISTS sections)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/man/
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} FILES_MATCHING PATTERN "*.${section}")
endforeach()
