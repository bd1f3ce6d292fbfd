# completions.awk: makes the completions of a shell out of the text of --help in the source, which a
# test holds against the table of options.
#
#     awk -v program=stdio_bus -v shell=bash|zsh|fish -f completions.awk help.c [ctl.c]
#
# ctl.c has the table of the commands of stdio_bus ctl.

# --- the text ---

# Makes a line of the text of a line of C; empty if it has none.
function text_of(line) {
    if (!match(line, /"([^"\\]|\\.)*\\n"/))
        return ""
    line = substr(line, RSTART + 1, RLENGTH - 4)
    gsub(/\\"/, "\"", line)
    return line
}

function begin_option(line,   name) {
    letter = line ~ /^ +-[A-Za-z], / ? substr(line, index(line, "-") + 1, 1) : ""
    name = substr(line, index(line, "--") + 2)
    match(name, /^[a-z-]+/)
    line = substr(name, RLENGTH + 1)
    name = substr(name, 1, RLENGTH)
    current = name in values ? "" : name
    if (current == "")
        return
    options[++count] = name
    letters[name] = letter
    values[name] = line
    if (match(line, /   *[^ ]/)) {
        values[name] = substr(line, 1, RSTART - 1)
        line = substr(line, RSTART)
        sub(/^ +/, "", line)
        purposes[name] = line
    }
    optional[name] = values[name] ~ /\[/
    attached[name] = values[name] ~ /\[=/
    gsub(/[][= ]/, "", values[name])
}

FILENAME ~ /ctl\.c$/ {
    if (match($0, /^    \{\.name = "[a-z]+"/))
        ctl = ctl (ctl == "" ? "" : " ") substr($0, 15, RLENGTH - 15)
    next
}
{ line = text_of($0) }
line ~ /^  -- COMMAND/ { takes_command = 1 }
line ~ /^ +(-[A-Za-z], )?--[a-z]/ {
    # Options in a row: --help, --version
    while (match(line, /^ +--[a-z-]+, /)) {
        begin_option(substr(line, 1, RLENGTH - 2))
        line = " " substr(line, RLENGTH)
    }
    begin_option(line)
    next
}
line ~ /^  [a-z]+   / {
    split(line, parts, " ")
    commands = commands (commands == "" ? "" : " ") parts[1]
    current = ""
    next
}
current != "" && line ~ /^                  / {
    sub(/^ +/, "", line)
    purposes[current] = purposes[current] (purposes[current] == "" ? "" : " ") line
    next
}
{ current = "" }

# --- what a value may be ---

BEGIN {
    words["protocol"] = "mcp acp lsp"
    words["clients"] = "shared sticky exclusive auto"
    words["framing"] = "ndjson content-length length"
    words["log-level"] = "debug info warn error"
    words["log-format"] = "text logfmt json journald"
}

function is_file(name) {
    return values[name] ~ /^(PATH|FILE)/
}

# Up to the first end of a statement.
function purpose(name,   text) {
    text = purposes[name]
    sub(/[;:.] .*/, "", text)
    return text
}

# Its value is a name of --list.
function is_shared(name) {
    return ctl != "" && name ~ /^(stop|restart|forget|log)$/
}

function quoted(text) {
    gsub(/'/, "'\\''", text)
    return "'" text "'"
}

# --- names of pools, workers, clients and shared servers ---

# They are read from the JSON of the program on the command line: after ctl, of the daemon at its
# socket; for --pool of the configuration, or of the daemon at the usual socket, or of the usual
# configuration; for --stop, --restart, --forget and --log of --list. Names are not trusted, and
# compgen -W expands its words: a name with a character that a shell would interpret is not offered.
function names_filter(name, number) {
    return "tr '{,' '\\n\\n' | sed -nE -e " name " -e " number " | sort -u"
}

BEGIN {
    pool_pattern = "'s#^\"pool\":\"([A-Za-z0-9_.@/+-]+)\"[]}]*$#\\1#p'"
    share_pattern = "'s#^\"name\":\"([A-Za-z0-9_.@/+-]+)\"[]}]*$#\\1#p'"
    number_pattern = "'s#^\"(worker|client)\":([0-9]+)[]}]*$#\\2#p'"
}

# In bash and zsh; `typed` has the words before the current one.
function names_function(typed) {
    print "_" program "_names() { # the word before"
    print "    local word before first socket config list=pools bus"
    print "    local name=" pool_pattern
    print "    local number=" number_pattern
    print "    local -a typed"
    print "    typed=(" typed ")"
    print "    bus=${typed[@]:0:1} first=${typed[@]:1:1}"
    print "    case $1 in"
    print "    restart) list=workers name= ;;"
    print "    disconnect) list=clients name= ;;"
    print "    drain | resume) list=workers ;;"
    print "    shared) name=" share_pattern " number= ;;"
    print "    *) number= ;;"
    print "    esac"
    print "    for word in \"${typed[@]:1}\"; do"
    print "        if [[ $word != = ]]; then"
    print "            [[ $before == --config ]] && config=$word"
    print "            [[ $word == --config=* ]] && config=${word#*=}"
    print "            [[ $word == */* ]] && socket=$word"
    print "            before=$word"
    print "        fi"
    print "    done"
    print "    bus=${bus/#\\~/$HOME} socket=${socket/#\\~/$HOME} config=${config/#\\~/$HOME}"
    print "    if [[ $1 == shared ]]; then"
    print "        \"$bus\" --list --json"
    print "    elif [[ $first == ctl ]]; then"
    print "        \"$bus\" ctl ${socket:+\"$socket\"} $list --json"
    print "    elif [[ -n $config ]]; then"
    print "        \"$bus\" --config \"$config\" --check-config --json"
    print "    else"
    print "        \"$bus\" ctl pools --json || \"$bus\" --check-config --json"
    print "    fi 2>/dev/null </dev/null | " names_filter("\"$name\"", "\"$number\"")
    print "}"
}

# --- bash ---

function bash_pattern(kind,   i, name, out) {
    for (i = 1; i <= count; i++) {
        name = options[i]
        if (values[name] != "" && !optional[name] && !(name in words) && name != "pool" &&
            !is_shared(name) && (is_file(name) ? "file" : "other") == kind)
            out = out (out == "" ? "" : "|") "--" name
    }
    return out
}

# What follows ctl: a socket, a command, what it takes.
function bash_ctl() {
    print "    if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == ctl ]]; then"
    print "        case $prev in"
    print "        log) COMPREPLY=($(IFS=' ' compgen -W '" words["log-level"] "' -- \"$cur\")) ;;"
    print "        ctl | */*) COMPREPLY=($(IFS=' ' compgen -W '" ctl "' -- \"$cur\"; " \
        "compgen -f -- \"$cur\")) ;;"
    print "        drain | resume | restart | disconnect)"
    print "            COMPREPLY=($(compgen -W \"$(_" program "_names \"$prev\")\" -- \"$cur\")) ;;"
    print "        *) COMPREPLY=($(IFS=' ' compgen -W '--json --table' -- \"$cur\")) ;;"
    print "        esac"
    print "        return"
    print "    fi"
    print "    if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == doctor ]]; then"
    print "        COMPREPLY=($(IFS=' ' compgen -W '--json --path --help' -- \"$cur\"))"
    print "        return"
    print "    fi"
    print "    if [[ $COMP_CWORD -eq 1 && $cur == [cd]* ]]; then"
    print "        COMPREPLY=($(IFS=' ' compgen -W 'ctl doctor' -- \"$cur\"))"
    print "        return"
    print "    fi"
}

function bash(   i, name, all) {
    if (ctl != "")
        names_function("\"${COMP_WORDS[@]:0:COMP_CWORD}\"")
    print "_" program "() {"
    print "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i IFS=$'\\n'"
    print "    COMPREPLY=()"
    print "    for ((i = 1; i < COMP_CWORD; i++)); do"
    print "        if [[ ${COMP_WORDS[i]} == -- ]]; then"
    print "            declare -F _command_offset >/dev/null && _command_offset $((i + 1))"
    print "            return"
    print "        fi"
    print "    done"
    print "    if [[ $cur == = ]]; then"
    print "        cur="
    print "    elif [[ $prev == = ]]; then"
    print "        prev=${COMP_WORDS[COMP_CWORD-2]}"
    print "    fi"
    if (ctl != "")
        bash_ctl()
    print "    case $prev in"
    print "    " bash_pattern("file") ")"
    print "        compopt -o filenames 2>/dev/null"
    print "        COMPREPLY=($(compgen -f -- \"$cur\"))"
    print "        return ;;"
    for (i = 1; i <= count; i++) {
        name = options[i]
        all = all "--" name "\\n" (letters[name] != "" ? "-" letters[name] "\\n" : "")
        if (name in words)
            print "    --" name ")\n        COMPREPLY=($(IFS=' ' compgen -W '" words[name] \
                "' -- \"$cur\"))\n        return ;;"
    }
    if (ctl != "")
        print "    --pool)\n        COMPREPLY=($(compgen -W \"$(_" program \
            "_names pool)\" -- \"$cur\"))\n        return ;;"
    if (ctl != "")
        print "    --stop | --restart | --forget | --log)\n" \
            "        COMPREPLY=($(compgen -W \"$(_" program \
            "_names shared)\" -- \"$cur\"))\n        return ;;"
    if (bash_pattern("other") != "")
        print "    " bash_pattern("other") ")\n        return ;;"
    print "    esac"
    if (commands != "") {
        gsub(/ /, "\\n", commands)
        print "    if ((COMP_CWORD == 1)); then"
        print "        COMPREPLY=($(compgen -W $'" commands "' -- \"$cur\"))"
        print "        [[ $cur == -* ]] || return"
        print "    fi"
        print "    if [[ $cur != -* ]]; then"
        print "        compopt -o filenames 2>/dev/null"
        print "        COMPREPLY=($(compgen -f -- \"$cur\"))"
        print "        return"
        print "    fi"
    }
    print "    COMPREPLY=($(compgen -W $'" all "' -- \"$cur\"))"
    print "}"
    print "complete -F _" program, program
}

# --- zsh ---

function zsh_value(name) {
    return name in words ? "(" words[name] ")" : is_file(name) ? "_files" : \
        name == "pool" && ctl != "" ? "{compadd -- $(_" program "_names pool)}" : \
        is_shared(name) ? "{compadd -- $(_" program "_names shared)}" : " "
}

function zsh(   i, name, text, spec) {
    print "#compdef " program "\n"
    if (ctl != "") {
        names_function("\"${(@)words[1,CURRENT-1]}\"")
        print "if [[ CURRENT -gt 3 && $words[2] == ctl &&"
        print "    $words[CURRENT-1] == (drain|resume|restart|disconnect) ]]; then"
        print "    compadd -- $(_" program "_names $words[CURRENT-1])"
        print "    return"
        print "fi"
        print "if [[ CURRENT -gt 2 && $words[2] == ctl ]]; then"
        print "    _alternative 'commands:command:(" ctl ")' 'files:socket:_files'"
        print "    return"
        print "fi"
        print "if [[ CURRENT -gt 2 && $words[2] == doctor ]]; then"
        print "    _values option --json --path --help"
        print "    return"
        print "fi"
    }
    print "_arguments -S \\"
    for (i = 1; i <= count; i++) {
        name = options[i]
        text = purpose(name)
        gsub(/[]:[]/, "\\\\&", text)
        spec = "[" text "]"
        if (values[name] != "") {
            text = values[name]
            gsub(/:/, "\\:", text)
            spec = "=" (attached[name] ? "-" : "") spec (optional[name] ? "::" : ":") text \
                ":" zsh_value(name)
        }
        if (letters[name] == "")
            print "    " quoted("--" name spec) " \\"
        else
            print "    " quoted("(-" letters[name] " --" name ")") \
                "{-" letters[name] ",--" name "}" quoted(spec) " \\"
    }
    if (commands != "")
        print "    " quoted("1:command:(" commands ")") " \\"
    print takes_command ? "    '*::command:_normal'" : "    '*:file:_files'"
}

# --- fish ---

function fish_names() {
    print "function __" program "_names"
    print "    set -l typed (commandline -opc)"
    print "    set -l bus (string replace -r '^~' $HOME -- $typed[1])"
    print "    set -l socket (string match -- '*/*' $typed[2..-1])[-1]"
    print "    set -l config (string match -- '--config=*' $typed)"
    print "    set config (string replace -r '^--config=' '' -- $config </dev/null)"
    print "    set -l at (contains -i -- --config $typed)"
    print "    and set config $typed[(math $at + 1)]"
    print "    set -l list pools"
    print "    set -l name " pool_pattern
    print "    set -l number " number_pattern
    print "    switch $argv[1]"
    print "        case restart"
    print "            set list workers"
    print "            set name ''"
    print "        case disconnect"
    print "            set list clients"
    print "            set name ''"
    print "        case drain resume"
    print "            set list workers"
    print "        case shared"
    print "            set name " share_pattern
    print "            set number ''"
    print "        case '*'"
    print "            set number ''"
    print "    end"
    print "    begin"
    print "        if test \"$argv[1]\" = shared"
    print "            $bus --list --json"
    print "        else if test \"$typed[2]\" = ctl"
    print "            $bus ctl (string replace -r '^~' $HOME -- $socket) $list --json"
    print "        else if test -n \"$config\""
    print "            set config (string replace -r '^~' $HOME -- $config)"
    print "            $bus --config $config --check-config --json"
    print "        else"
    print "            $bus ctl pools --json; or $bus --check-config --json"
    print "        end"
    print "    end 2>/dev/null </dev/null | " names_filter("$name", "$number")
    print "end"
}

function fish(   i, name, names) {
    if (ctl != "")
        fish_names()
    print "complete -c " program " -f"
    if (commands != "")
        print "complete -c " program " -n __fish_use_subcommand -a " quoted(commands)
    if (ctl != "") {
        print "complete -c " program " -n __fish_use_subcommand -a ctl -d 'asks a running daemon'"
        print "complete -c " program " -n __fish_use_subcommand -a doctor -d 'names what is wrong'"
        print "complete -c " program " -n '__fish_seen_subcommand_from doctor' -a '--json --path'"
        names = "string match -qr '^(drain|resume|restart|disconnect)$' -- (commandline -opc)[-1]"
        print "complete -c " program " -n " \
            quoted("__fish_seen_subcommand_from ctl; and not " names) " -F -a " quoted(ctl)
        print "complete -c " program " -n " \
            quoted("__fish_seen_subcommand_from ctl; and " names) \
            " -a '(__" program "_names (commandline -opc)[-1])'"
    }
    if (takes_command) {
        print "function __" program "_command"
        print "    set -l words (commandline -opc) (commandline -ct)"
        print "    set -l start (math (contains -i -- -- $words) + 1)"
        print "    complete -C \"$words[$start..-1]\""
        print "end"
        print "complete -c " program " -n 'contains -- -- (commandline -opc)' -a '(__" program \
            "_command)'"
    }
    for (i = 1; i <= count; i++) {
        name = options[i]
        print "complete -c " program (letters[name] != "" ? " -s " letters[name] : "") " -l " name \
            (values[name] == "" || optional[name] ? "" : name in words ? \
            " -x -a " quoted(words[name]) : is_file(name) ? " -r -F" : \
            name == "pool" && ctl != "" ? " -x -a '(__" program "_names pool)'" : \
            is_shared(name) ? " -x -a '(__" program "_names shared)'" : " -x") \
            " -d " quoted(purpose(name))
    }
}

END {
    if (shell != "zsh") # where #compdef is the first line
        print "# Completions of " program ", made of its --help."
    if (shell == "bash")
        bash()
    else if (shell == "zsh")
        zsh()
    else
        fish()
}
