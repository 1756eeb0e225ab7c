#!/usr/bin/env python3
"""The registry as a language binding reads it, and examples/other_engine.py against it: each field
of dpi_sampler_options that a parameter names stands where the example's own declaration has it.

    DPINFER_LIB=path/to/libdpinfer.so registry.py EXAMPLES
"""
import ctypes as c
import sys

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import other_engine  # noqa: E402


class Parameter(c.Structure):
    _fields_ = [(name, c.c_char_p) for name in ("name", "option", "old_option", "key", "label",
                                                "help", "unit")] + [
        ("type", c.c_int32), ("offset", c.c_uint32), ("min", c.c_double), ("max", c.c_double),
        ("min_open", c.c_int32), ("max_open", c.c_int32), ("zero", c.c_char_p),
        ("is_optional", c.c_int32), ("default_value", c.c_double), ("default_text", c.c_char_p),
        ("choices", c.POINTER(c.c_char_p)), ("needs", c.c_char_p)]


lib = other_engine.lib
lib.dpi_method_parameter_get.restype = c.POINTER(Parameter)
lib.dpi_parameter_parse.argtypes = [c.c_void_p, c.c_void_p, c.c_char_p, c.c_void_p]
REAL = 1
# Where the parameter's name is not that of its field.
FIELDS = {"public_top_k": "top_k", "screen_top_k": "top_k"}

checked = set()
for method in range(lib.dpi_method_count()):
    for index in range(lib.dpi_method_parameter_count(method)):
        p = lib.dpi_method_parameter_get(method, index).contents
        name = p.name.decode()
        field = getattr(other_engine.Options, FIELDS.get(name, name))
        assert field.offset == p.offset, (name, field.offset, p.offset)
        assert field.size == (8 if p.type == REAL else 4), (name, field.size)
        checked.add(name)
options = other_engine.Options(c.sizeof(other_engine.Options))
tau = lib.dpi_method_parameter_get(1, 8)
assert tau.contents.name == b"tau"
other_engine.call(lib.dpi_parameter_parse, tau, c.byref(options), b"0.8")
assert options.tau == .8
assert {"tau", "n_tokens", "svt_sigma", "screen_sigma", "n_private"} <= checked, checked
print(f"{len(checked)} passed, 0 failed")
