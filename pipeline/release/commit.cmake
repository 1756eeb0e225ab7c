# Writes OUTPUT, a header with the commit that SOURCE is at, when that has changed.
cmake_minimum_required(VERSION 3.20)
set(commit unknown)
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=40 "--exclude=*"
    OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(found)
    set(commit ${found})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define DPI_COMMIT \"@commit@\"\n" @ONLY)
