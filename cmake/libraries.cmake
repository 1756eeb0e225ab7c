file(STRINGS ${CMAKE_SOURCE_DIR}/include/dpinfer/status.h abi REGEX "^#define DPI_ABI_VERSION")
string(REGEX MATCH "[0-9]+" DPI_ABI "${abi}")

# dpi_objects(VARIABLE folder...): the objects of folders, with those that another build has made
# (DPI_KERNELS_FROM), which CMake does not count among them.
function(dpi_objects objects)
  foreach(folder IN LISTS ARGN)
    list(APPEND all $<TARGET_OBJECTS:dpi_${folder}>
      $<TARGET_PROPERTY:dpi_${folder},DPI_MORE_OBJECTS>)
  endforeach()
  set(${objects} "${all}" PARENT_SCOPE)
endfunction()

# dpi_add_archive(NAME FOLDERS library...): libNAME.a of the objects of FOLDERS, as the target
# libNAME for programs that use the public interface.
#
# The archive is one relocatable object in which only the public symbols are still visible.
function(dpi_add_archive name folders)
  list(TRANSFORM folders PREPEND dpi_ OUTPUT_VARIABLE targets)
  dpi_objects(objects ${folders})
  set(library ${CMAKE_CURRENT_BINARY_DIR}/lib${name}.a)
  add_custom_command(
    OUTPUT ${library}
    COMMAND ${CMAKE_LINKER} -r -o ${name}_all.o ${objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${name}_all.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${library}
    COMMAND ${CMAKE_AR} rcs ${library} ${name}_all.o
    DEPENDS ${targets} ${objects}
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(lib${name}_archive ALL DEPENDS ${library})
  add_library(lib${name} STATIC IMPORTED GLOBAL)
  add_dependencies(lib${name} lib${name}_archive)
  set_target_properties(lib${name} PROPERTIES IMPORTED_LOCATION ${library})
  target_include_directories(lib${name} INTERFACE ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(lib${name} INTERFACE ${ARGN})
endfunction()

# dpi_add_library(NAME FOLDERS library...): the same, and with DPI_SHARED libNAME.so as
# libNAME_shared.
function(dpi_add_library name folders)
  dpi_add_archive(${name} "${folders}" ${ARGN})
  if(DPI_SHARED)
    dpi_objects(objects ${folders})
    add_library(lib${name}_shared SHARED ${objects})
    target_link_libraries(lib${name}_shared PRIVATE dpi_flags ${ARGN})
    set_target_properties(lib${name}_shared PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} VERSION ${PROJECT_VERSION} SOVERSION ${DPI_ABI})
  endif()
endfunction()
