#!/usr/bin/env python3
"""other_engine.c once more, from Python through libdpinfer.so: the same text for the same seed.

    DPINFER_LIB=path/to/libdpinfer.so other_engine.py [--seed N] PUBLIC.txt RECORD.txt...

Structures are declared here as in dpinfer.h; the library refuses a struct_size that it does not
know.
"""
import collections
import ctypes as c
import math
import os
import sys

# ---- The part of dpinfer.h that is used ---------------------------------------------------------


class Error(c.Structure):
    _fields_ = [("code", c.c_int32), ("reserved", c.c_int32), ("offset", c.c_uint64),
                ("message", c.c_char * 488)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [
        (name, c.c_int32) for name in ("method", "n_vocab", "n_ref", "n_tokens", "top_k")] + [
        (name, c.c_double) for name in ("tau", "rho", "epsilon", "delta")] + [
        ("random", c.c_void_p), ("random_user", c.c_void_p)] + [
        (name, c.c_int32) for name in ("adjacency", "accountant", "denominator", "center")] + [
        (name, c.c_double) for name in ("clip", "subsample")] + [
        ("max_per_unit", c.c_int32), ("pace", c.c_int32), ("pace_theta", c.c_double),
        ("pace_tokens", c.c_int32), ("pace_share", c.c_double), ("free_top_k", c.c_int32), ("free_tau", c.c_double)] + [
        (name, c.c_double) for name in ("svt_threshold", "svt_sigma",
                                        "screen_threshold", "screen_sigma", "tau_public",
                                        "top_p", "min_p")] + [
        (name, c.c_int32) for name in ("n_private", "acknowledge_not_dp", "isa")]


INVISIBLEINK = 1


class Plan(c.Structure):  # begins like this: it is only ever read where the library has it
    _fields_ = [("struct_size", c.c_size_t), ("K", c.c_int64), ("a", c.c_uint64)] + [
        (name, c.c_double) for name in ("clip", "eta", "rho_token", "rho_total", "rho_budget",
                                        "epsilon", "delta")]


lib = c.CDLL(os.environ.get("DPINFER_LIB", "libdpinfer.so.1"))
lib.dpi_sampler_create.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p]
lib.dpi_sampler_begin.argtypes = [c.c_void_p, c.c_void_p]
lib.dpi_sampler_step.argtypes = [c.c_void_p] * 5
lib.dpi_sampler_tokens_left.argtypes = [c.c_void_p]
lib.dpi_sampler_plan_get.argtypes = [c.c_void_p]
lib.dpi_sampler_plan_get.restype = c.POINTER(Plan)
lib.dpi_sampler_free.argtypes = [c.c_void_p]
lib.dpi_sampler_free.restype = None
lib.dpi_zcdp_epsilon.argtypes = [c.c_double, c.c_double, c.c_void_p, c.c_void_p]


def call(function, *arguments):
    """Calls a function that returns a dpi_status and takes a dpi_error last."""
    error = Error()
    if function(*arguments, c.byref(error)) != 0:
        sys.exit("other_engine: " + error.message.decode())


# ---- The engine: other_engine.c explains it -----------------------------------------------------

END, N_VOCAB, ORDER, PRIOR, MAX_TOKENS = 95, 96, 5, 1, 200
Logits = c.c_float * N_VOCAB


def tokens(text):
    return bytes(END if b == 10 else b - 32 if 32 <= b < 127 else 0 for b in text)


def engine_logits(prompt, context, logits):
    p = [1 / N_VOCAB] * N_VOCAB
    for order in range(min(ORDER, len(context)) + 1):
        last = context[len(context) - order:]
        counts = collections.Counter()
        at = prompt.find(last)
        while at >= 0 and at + order < len(prompt):
            counts[prompt[at + order]] += 1
            at = prompt.find(last, at + 1)
        total = sum(counts.values())
        p = [(counts[y] + PRIOR * p[y]) / (total + PRIOR) for y in range(N_VOCAB)]
    logits[:] = [math.log(x) for x in p]


# ---- Answers ------------------------------------------------------------------------------------


def answer(prompts, opening, rho, seed):
    """prompts: the public one and one for each record, None for an empty slot. Returns rho."""
    options = Options(c.sizeof(Options), method=INVISIBLEINK, n_vocab=N_VOCAB,
                      n_ref=len(prompts) - 1, n_tokens=MAX_TOKENS, top_k=10, tau=.8, rho=rho)
    if seed is not None:
        options.random = c.cast(lib.dpi_random_insecure, c.c_void_p)
        options.random_user = c.addressof(seed)
    sampler = c.c_void_p()
    call(lib.dpi_sampler_create, c.byref(options), c.byref(sampler))
    call(lib.dpi_sampler_begin, sampler)

    logits = [None if prompt is None else Logits() for prompt in prompts]
    references = (c.c_void_p * (len(prompts) - 1))(
        *[None if row is None else c.addressof(row) for row in logits[1:]])
    context, token = tokens(opening), c.c_int32()
    while lib.dpi_sampler_tokens_left(sampler) > 0:
        for prompt, row in zip(prompts, logits):
            if prompt is not None:
                engine_logits(prompt, context, row)
        call(lib.dpi_sampler_step, sampler, logits[0], references, c.byref(token))
        if token.value == END:
            break
        context += bytes([token.value])
    print("".join(chr(32 + t) for t in context) + "\n")
    spent = lib.dpi_sampler_plan_get(sampler).contents.rho_total
    lib.dpi_sampler_free(sampler)
    return spent


def read_file(path):
    with open(path, "rb") as file:
        return tokens(file.read())


def read_record(public, path):
    try:
        return public + read_file(path)
    except OSError:
        return None  # an empty slot


def main(arguments):
    seed = None
    if arguments[:1] == ["--seed"] and len(arguments) > 1:
        seed = c.c_uint64(int(arguments[1]))
        arguments = arguments[2:]
    if len(arguments) < 2:
        sys.exit("usage: other_engine.py [--seed N] PUBLIC.txt RECORD.txt...")
    public, records = read_file(arguments[0]), arguments[1:]
    prompts = [public] + [read_record(public, path) for path in records]
    rho = answer(prompts, b"Once upon a time", 1, seed) + answer(prompts, b"The old man", 4, seed)
    epsilon = c.c_double()
    call(lib.dpi_zcdp_epsilon, rho, 1e-6, c.byref(epsilon))
    what = "Without --seed" if seed is not None else "Privacy statement"
    print(f"{what}: {rho:.6g}-zCDP, and so ({epsilon.value:.6g}, 1e-06)-DP for both texts; "
          f"replace-by-null; one record = one file, {len(records)} slots", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
