_as2d_completion() {
    local IFS=$'
'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" \
                   COMP_CWORD=$COMP_CWORD \
                   _AS2D_COMPLETE=complete_bash $1 ) )
    return 0
}

complete -o default -F _as2d_completion as2d
