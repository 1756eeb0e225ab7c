/* trace_marks.h - where a trace under QEMU begins and ends: a system call without arguments that is
 * given two. */
#ifndef TRACE_MARKS_H
#define TRACE_MARKS_H

#define TRACE_MARK UINT64_C(0x6470692d74726163) /* the first; the second: 1 begins, 0 ends */

#endif
