# cmake --install: headers, libraries, program, manual page, completions, CMake package, pkg-config
# files and the licence. CMake package and pkg-config files find their own place, so that the tree
# may be moved and --prefix chosen late. Components: dev (what linking the static libraries needs),
# shared, bin.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(cmake/build_to_install.cmake)

# The library with everything in it: dpinfer::full.
set(DPI_FULL dpinfer_full)

# What a program links beside lib*.a, in this order.
set(core_libs ${DPI_BLAS_LIBS} ${PCRE2_LDFLAGS})
set(full_libs ${JANSSON_LDFLAGS} ${NETTLE_LDFLAGS} ${SQLITE3_LDFLAGS} ${ZLIB_LDFLAGS}
  -lfftw3_threads ${FFTW_LDFLAGS} -lcsv ${core_libs})
foreach(lib ${OpenMP_C_LIB_NAMES} m)
  list(APPEND core_libs -l${lib})
  list(APPEND full_libs -l${lib})
endforeach()
set(DPI_CORE_PRIVATE_LIBS ${core_libs})
set(DPI_FULL_PRIVATE_LIBS ${full_libs})

file(RELATIVE_PATH DPI_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" DPI_PREFIX_FROM_PC "${DPI_PREFIX_FROM_PC}")

# dpi_install_library(NAME DESCRIPTION library...): libNAME.a, libNAME.so and NAME.pc.
function(dpi_install_library PC_NAME PC_DESCRIPTION)
  list(JOIN ARGN " " PC_PRIVATE_LIBS)
  configure_file(cmake/library.pc.in ${PC_NAME}.pc @ONLY)
  dpi_build_to_install(dev lib${PC_NAME}_archive ${CMAKE_BINARY_DIR}/lib${PC_NAME}.a)
  install(FILES ${CMAKE_BINARY_DIR}/lib${PC_NAME}.a DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT dev)
  install(FILES ${CMAKE_BINARY_DIR}/${PC_NAME}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT dev)
  if(DPI_SHARED)
    dpi_build_to_install(shared lib${PC_NAME}_shared ${CMAKE_BINARY_DIR}/lib${PC_NAME}.so)
    install(TARGETS lib${PC_NAME}_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
      COMPONENT shared)
  endif()
endfunction()
dpi_install_library(dpinfer
  "Differentially private text from LLaMA models, and the sampler for other engines" ${core_libs})
dpi_install_library(${DPI_FULL}
  "dpinfer, files of records, ledgers, jobs, reports, and training of small models" ${full_libs})

configure_package_config_file(cmake/dpinfer-config.cmake.in dpinfer-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dpinfer
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
# Versions 0.x promise nothing to each other.
write_basic_package_version_file(dpinfer-config-version.cmake COMPATIBILITY SameMinorVersion)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(FILES ${CMAKE_BINARY_DIR}/dpinfer-config.cmake
  ${CMAKE_BINARY_DIR}/dpinfer-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dpinfer COMPONENT dev)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT dev)

# The manual page and the completions are made of what the program says of itself.
set(page ${CMAKE_BINARY_DIR}/dpinfer.1)
set(completions ${CMAKE_BINARY_DIR}/completions)
file(MAKE_DIRECTORY ${completions})
add_custom_command(OUTPUT ${page} ${completions}/dpinfer ${completions}/_dpinfer
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/manpage.sh ${CMAKE_CROSSCOMPILING_EMULATOR}
    $<TARGET_FILE:dpinfer> > ${page}
  COMMAND dpinfer completion bash > ${completions}/dpinfer
  COMMAND dpinfer completion zsh > ${completions}/_dpinfer
  DEPENDS dpinfer ${CMAKE_CURRENT_LIST_DIR}/manpage.sh VERBATIM)
add_custom_target(dpinfer_manpage ALL DEPENDS ${page})
dpi_build_to_install(bin dpinfer_manpage ${page}) # and the program
install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT bin)
install(FILES ${completions}/dpinfer
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT bin)
install(FILES ${completions}/_dpinfer
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT bin)
install(TARGETS dpinfer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT bin)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT bin)
# What `dpinfer demo` shows (tools/command/cmd_demo.c looks for it here).
install(FILES models/dpinfer-4m-q8_0.gguf DESTINATION share/dpinfer/models COMPONENT bin)
install(FILES examples/discharge.jsonl DESTINATION share/dpinfer/examples COMPONENT bin)
install(DIRECTORY examples/refs DESTINATION share/dpinfer/examples COMPONENT bin)
