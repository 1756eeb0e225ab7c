# A file as the bytes of a C array: cmake -DIN=page.html -DOUT=page.inc -P embed.cmake
file(READ ${IN} hex HEX)
string(REPEAT "." 80 line)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "${bytes}\n")
