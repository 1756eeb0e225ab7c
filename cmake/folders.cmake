# dpi_add_folder(NAME [SOURCES file...] [UPSTREAM folder...] [LIBRARIES target...])
#
# The folder NAME as the target dpi_NAME, of objects. Its files include headers by their path from
# the root ("base/mem.h"). They find those of the folder itself and of the folders UPSTREAM, and no
# others: each folder has an include directory with one link to it, which only those get that name
# it. include/ is upstream of all. tests/include/directions.sh checks the same by reading.
function(dpi_see folder)
  set(see ${CMAKE_BINARY_DIR}/see/${folder})
  file(MAKE_DIRECTORY ${see})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${see}/${folder} SYMBOLIC)
endfunction()

function(dpi_add_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;UPSTREAM;LIBRARIES" ${ARGN})
  dpi_see(${name})
  add_library(dpi_${name} OBJECT ${ARG_SOURCES})
  target_include_directories(dpi_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include
    ${CMAKE_BINARY_DIR}/see/${name})
  target_link_libraries(dpi_${name} PUBLIC dpi_flags ${ARG_LIBRARIES})
  foreach(folder IN LISTS ARG_UPSTREAM)
    target_link_libraries(dpi_${name} PUBLIC dpi_${folder})
  endforeach()
endfunction()
