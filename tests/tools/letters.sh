# What units.sh and labels.sh share: letters, and runs whose budget is so large that a text says
# what its letter is about. The prompt of a letter has no ticket in it.
# shellcheck shell=bash
# shellcheck disable=SC2034 # the variables are for those who source this
heart='Discharge instructions: heart failure. '
heart+='Your stay began with swollen legs because of heart failure.'
blood='Your care plan after a blood infection. You stayed on ward 4 because of a blood infection.'
burn='Discharge instructions: a burn. You were cared for at Queensway Hospital for a burn.'
# No draw decides a test: with --temp .4 and a rho of the same clip none of 150 texts of each letter
# said something else, so that 2 in 100 do at most; at .05 their share is the eighth power, 3e-14.
loud=(-n 18 --temp .05 --top-k 0 --rho 320000 --pace none --jsonl
    --public-prompt 'Ticket 5318, priority normal: the' --private-prompt
    $'Here is one document:\n\n{reference}\n\nWrite another of its kind.')
