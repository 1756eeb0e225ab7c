#!/usr/bin/env bash
# No file of the library but base/format.c calls what depends on the locale of the program: numbers
# with a point to text and back, classes and cases of letters, messages of the system.
#   locale.sh SOURCE
. "$(dirname "$0")/include_support.sh"
mapfile -t code < <(find base draw kernels gguf tokenizer engine grammar dp pipeline train \
    -name '*.[ch]' ! -path base/format.c | sort)
while IFS= read -r call; do
    complain "$call follows the locale: base/format.h"
done < <(perl -0777 -ne '
    s{/\*.*?\*/}{ $& =~ s/[^\n]//gr }gse;
    sub at {
        my ($place, $name) = @_;
        print "$ARGV:", 1 + (substr($_, 0, $place) =~ tr/\n//), ": $name\n";
    }
    while (/\b(v?(?:s|sn|f|as|d)?(?:printf|scanf))\s*\(((?:[^;"]|"(?:[^"\\]|\\.)*")*)\)/g) {
        my ($name, $given, $place) = ($1, $2, $-[0]);
        at($place, $name) if $name =~ /^v/ || $given =~ /%[-+ #0]*[0-9*]*(\.[0-9*]*)?l?[aefg]/i;
    }
    at($-[0], $1) while /\b(strto(?:d|f|ld)|atof|str(?:n?case(?:cmp|str)|coll|error(?:_r)?)
        |is(?:alpha|alnum|space|digit|upper|lower|punct|print|cntrl|xdigit)|to(?:upper|lower)
        |setlocale|localeconv)\s*\(/gx
' "${code[@]}")
passed=$((passed + ${#code[@]}))
finish 200
