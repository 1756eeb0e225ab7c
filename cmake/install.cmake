# cmake --install: header, libraries, program, manual page, CMake package and pkg-config file. The
# last two find their own place, so that the tree may be moved and --prefix chosen late. Components:
# dev (what linking libdpinfer.a needs), shared, bin.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What the program that links libdpinfer.a links beside it, in this order.
set(DPI_PRIVATE_LIBS ${OPENBLAS_LDFLAGS} ${PCRE2_LDFLAGS})
foreach(lib ${OpenMP_C_LIB_NAMES} m)
  list(APPEND DPI_PRIVATE_LIBS -l${lib})
endforeach()
list(JOIN DPI_PRIVATE_LIBS " " DPI_PRIVATE_LIBS_LINE)

file(RELATIVE_PATH DPI_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" DPI_PREFIX_FROM_PC "${DPI_PREFIX_FROM_PC}")
configure_file(cmake/dpinfer.pc.in dpinfer.pc @ONLY)
configure_package_config_file(cmake/dpinfer-config.cmake.in dpinfer-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dpinfer
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
# Versions 0.x promise nothing to each other.
write_basic_package_version_file(dpinfer-config-version.cmake COMPATIBILITY SameMinorVersion)

install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/libdpinfer.a DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/dpinfer.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/dpinfer-config.cmake
  ${CMAKE_BINARY_DIR}/dpinfer-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dpinfer COMPONENT dev)
if(DPI_SHARED)
  install(TARGETS libdpinfer_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT shared)
endif()
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/dpinfer.1
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/manpage.sh $<TARGET_FILE:dpinfer> > dpinfer.1
  DEPENDS dpinfer ${CMAKE_CURRENT_LIST_DIR}/manpage.sh WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
  VERBATIM)
add_custom_target(dpinfer_manpage ALL DEPENDS ${CMAKE_BINARY_DIR}/dpinfer.1)
install(FILES ${CMAKE_BINARY_DIR}/dpinfer.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT bin)
install(TARGETS dpinfer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT bin)
# What `dpinfer demo` shows (tools/cmd_demo.c looks for it here).
install(FILES models/dpinfer-4m-q8_0.gguf DESTINATION share/dpinfer/models COMPONENT bin)
install(DIRECTORY examples/refs DESTINATION share/dpinfer/examples COMPONENT bin)
