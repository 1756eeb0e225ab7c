#!/bin/sh
# manpage.sh [EMULATOR] PROGRAM: dpinfer.1 on stdout, from what the program says of itself with -h.
set -eu

# Help as it is printed, in the eyes of troff.
verbatim() {
    echo .nf
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
    echo .fi
}

version=$("$@" --version)
help=$("$@" -h) # fails here, not in a pipe, if the program does
commands=$(printf '%s\n' "$help" | sed -n '/^  dpinfer/d; s/^  \([a-z-]*\) .*/\1/p')
cat <<END
.TH DPINFER 1 "" "$version" "User Commands"
.SH NAME
dpinfer \\- write text about sensitive documents with differential privacy
.SH SYNOPSIS
.B dpinfer
.I COMMAND
.RI [ options ]
.RI [ arguments ]
.br
.B dpinfer help
.RI [ COMMAND ]
.br
.B dpinfer version
.SH DESCRIPTION
.B dpinfer
reads sensitive documents with a LLaMA model and writes new text in their likeness. Every token is
drawn by an exact differentially private mechanism. So the text says provably little about any
single document: how little is the privacy budget, a number that is chosen before the run. The text
goes to standard output, and everything else to standard error, with the privacy statement at the
end. Nothing leaves the machine, except with infer and a remote attack.
.SH COMMANDS
END
printf '%s\n' "$help" | sed '1,/^Usage/d; /explains a command/,$d' | verbatim
for command in $commands; do
    help=$("$@" "$command" -h)
    echo ".SS dpinfer $command" | sed 's/-/\\-/g'
    printf '%s\n' "$help" | sed '/^Exit codes/,$d' | verbatim
done
cat <<'END'
.SH EXAMPLES
What a budget of epsilon 3 buys for the rows of a table, before any of them is read:
.PP
.nf
    dpinfer plan model.gguf tickets.csv \-\-epsilon 3 \-\-delta 1e\-6 \-B 32
.fi
.PP
Texts from its column "body", with a report that can be checked:
.PP
.nf
    dpinfer run model.gguf tickets.csv \-\-text\-field body \-\-epsilon 3 \-B 32 \e
        \-\-public\-prompt 'Write a support ticket.' \-o texts.txt \-\-report report.json
    dpinfer verify report.json \-\-model model.gguf
.fi
.PP
An answer from a folder of .txt files:
.PP
.nf
    dpinfer run model.gguf letters/ \-\-rho 0.5 \-\-query 'What do patients complain about?'
.fi
.PP
The built\-in model on its sample documents:
.PP
.nf
    dpinfer demo
.fi
.SH EXIT STATUS
.TP
0
success
.TP
1
failure while running: memory, randomness, reading or writing; an audit that did not pass
.TP
2
the command line, or a value that does not fit the model
.TP
3
the model file was refused
.TP
4
the records were refused
.TP
5
the report was refused
.TP
6
the budget of a ledger does not allow it; no record was read
.TP
7
the hours of \-\-max\-hours are over: the job can go on
.TP
130, 138, 143
stopped by SIGINT, SIGUSR1, SIGTERM: the text so far and the statement were written, or the job can
go on
.SH ENVIRONMENT
.TP
DPI_ISA
the instruction set, if \-\-isa is not given: auto, ref, avx2 or avx512
.TP
OMP_WAIT_POLICY
passive: idle threads sleep instead of waiting in a loop, which is better on a busy machine
.TP
NO_COLOR
.B dpinfer demo
does not colour its output
.SH FILES
.TP
share/dpinfer/models, share/dpinfer/examples
the built\-in model and its sample documents, beside the folder of the program
.SH SEE ALSO
.BR getrandom (2),
.BR sha256sum (1)
.PP
The proofs of the guarantee are in dp/PRIVACY.md of the source, the commands with more examples in
docs/commands.md.
END
