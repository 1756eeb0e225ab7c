#!/usr/bin/env bash
# letters.sh COUNT PATIENTS: made-up discharge letters as a CSV, several of a patient, in twelve
# departments. They come from the grammar in corpus/; no person stands behind them.
set -euo pipefail
build=${BUILD:-build}
"$build/dpinfer-corpus" make --domain discharge --law private --split heldout -n "$1" --seed 2026 |
    awk -v patients="$2" '
    BEGIN {
        split("pneumonia pulmonology asthma pulmonology heart_failure cardiology " \
              "hip_fracture orthopaedics appendicitis surgery gallstones surgery " \
              "diabetes endocrinology stroke neurology kidney_infection nephrology " \
              "concussion emergency burn burns allergy allergology sepsis intensive_care " \
              "back_pain pain_clinic", pairs, " ")
        for (i = 1; i in pairs; i += 2) department[pairs[i]] = pairs[i + 1]
        print "letter,patient,department,text"
    }
    {
        match($0, /"text":"([^"\\]|\\.)*"/)
        text = substr($0, RSTART + 8, RLENGTH - 9)
        gsub(/\\n/, "\n", text); gsub(/\\"/, "\"\"", text)
        match($0, /"dx":"[a-z_]*"/)
        # Most patients have two or three letters, some have one, a few have many.
        x = (NR * 0.6180339887) % 1
        printf "%d,P%05d,%s,\"%s\"\n", NR, int(patients * x * (2 - x) / 1.0001),
               department[substr($0, RSTART + 6, RLENGTH - 7)], text
    }'
