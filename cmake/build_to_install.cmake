# dpi_build_to_install(COMPONENT TARGET FILE): `cmake --install` installs files and builds none. This
# FILE is built then, if it is not there: after `--target dpinfer` the libraries are not.
cmake_host_system_information(RESULT DPI_PROCESSORS QUERY NUMBER_OF_LOGICAL_CORES)
function(dpi_build_to_install component target file)
  install(CODE "
    if(NOT EXISTS \"${file}\")
      execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${CMAKE_BINARY_DIR}\"
        --target ${target} --parallel ${DPI_PROCESSORS} COMMAND_ERROR_IS_FATAL ANY)
    endif()" COMPONENT ${component})
endfunction()
