/* wrap.h - a call of the system that the linker routes here (--wrap):
 *     WRAP(int, fsync, int fd) { ... __real_fsync(fd) ... } */
#ifndef WRAP_H
#define WRAP_H

#define WRAP(type, call, ...)                                                                      \
    type __real_##call(__VA_ARGS__);                                                               \
    type __wrap_##call(__VA_ARGS__);                                                               \
    type __wrap_##call(__VA_ARGS__)

#endif
